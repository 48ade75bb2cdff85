"""Fencing off tries that may still be on their way."""

from __future__ import annotations

from collections.abc import Iterable

from firnline.journal.events import Event
from firnline.journal.lease import Lease
from firnline.ops.change import change, version_of
from firnline.ops.workplace import Workplace
from firnline.ports.formats import Edited, State


def fence_off(work: Workplace, lease: Lease, tries: Iterable[Event]) -> bool:
    """Tells whether the table had to be moved on so that none of these tries can land any more.

    A process that was frozen just before it sent its commit sends it when it wakes, whatever became of its lease. As
    long as the table meets what such a try expects, it would land: after its run was cancelled, or after an undo was
    refused and the files were purged. What the catalog says is put in between, and the try can only lose.
    """
    proofs = [event.detail for event in tries]

    def edit(state: State) -> Edited | None:
        between = work.source.commits.fence(proofs, version_of(state))
        return None if between is None else work.source.format.amend(state, between, work.now())

    if not proofs:
        return False
    return change(work.source, edit, lambda base, edited, attempt: lease.renew(), still=lease.check) is not None
