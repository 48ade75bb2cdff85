"""Writing refs and properties: one small commit, run again where it lost a race."""

from __future__ import annotations

from collections.abc import Callable

from firnline.ops.change import Changed, change
from firnline.ops.workplace import Workplace
from firnline.ports.formats import Amendment, Edited, State

Amend = Callable[[State], Amendment]
"""From a fresh state to what is to be written; raises where it cannot be."""


def amend(work: Workplace, wanted: Amend) -> Changed | None:
    """Returns the commit, or None where the table already says all that. The wish is formed anew for every try."""

    def edit(state: State) -> Edited | None:
        amendment = wanted(state)
        return None if amendment.is_empty else work.source.format.amend(state, amendment, work.store_now(state))

    return change(work.source, edit, lambda base, edited, attempt: None)
