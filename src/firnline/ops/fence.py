"""Fencing off tries that may still be on their way."""

from __future__ import annotations

from collections.abc import Iterable

from firnline.journal.events import Event
from firnline.journal.lease import Lease
from firnline.ops.change import change
from firnline.ops.workplace import Workplace
from firnline.ports.formats import Amendment


def fence_off(work: Workplace, lease: Lease, tries: Iterable[Event]) -> bool:
    """Tells whether the table had to be moved on so that none of these tries can land any more.

    A process that was frozen just before it sent its commit sends it when it wakes, whatever became of its lease. As
    long as the table stands where such a try was built, it would land: after its run was cancelled, or after an undo
    was refused and the files were purged. A version that changes nothing is put in between, and the try can only lose.
    """
    bases = {event.detail["base"] for event in tries}
    if not bases or work.source.load().fence not in bases:
        return False
    change(
        work.source,
        work.store,
        lambda state: work.source.format.amend(state, Amendment(), work.now()) if state.fence in bases else None,
        lambda base, edited, location: lease.renew(),
    )
    return True
