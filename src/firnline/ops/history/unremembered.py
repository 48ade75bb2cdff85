"""What runs did to a table that does not remember it: told by their records alone, as long as these are there."""

from __future__ import annotations

from firnline.journal.events import RunState
from firnline.journal.outcomes import outcome_totals
from firnline.journal.runs import Run
from firnline.ops.history.timeline import Timeline
from firnline.ops.table.context import TableContext
from firnline.ports.formats import State

_BACK = (RunState.UNDONE, RunState.CANCELLED)


def add_unremembered(timeline: Timeline, work: TableContext, state: State) -> None:
    """Adds the days on which such runs expired and purged. One that the ledger knows is in there already."""
    for run in work.runs(state):
        if run.committed is None or run.committed.detail.get("history") is None:
            _add(timeline, work, run)


def _add(timeline: Timeline, work: TableContext, run: Run) -> None:
    if run.state not in _BACK and run.removal is not None and run.committed is not None:
        timeline.expiry(run.committed.at_ms, len(run.removal.ids))
    deleted = outcome_totals(work.store, run.folder).get("deleted")
    if deleted is not None:
        timeline.purge(run.events[-1].at_ms, deleted.files, deleted.bytes)
