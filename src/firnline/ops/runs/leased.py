"""A run in hand: what commit, purge and undo get, in one value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from firnline.journal.events import FINISHED, RunState
from firnline.journal.lease import Lease
from firnline.journal.runs import Run
from firnline.ops.runs.moving import moved
from firnline.ops.table.context import TableContext
from firnline.ports.formats import State


@dataclass(frozen=True, slots=True)
class LeasedRun:
    """A run, its table, and the lease under which this process alone may move it."""

    work: TableContext
    lease: Lease
    run: Run

    def load(self) -> State:
        """Returns the table as it is now. Raises TableMoved unless it is the one that the run was planned on."""
        state = self.work.source.load()
        self.work.same_table(state, self.run)
        return state

    def moved(self, state: RunState, **detail: Any) -> LeasedRun:
        """Returns the run in its new state, written first. Raises LeaseHeld if another process moved it, and
        RefusedForSafety if the audit log must have it and cannot be written.

        One that has ended leaves the list of unfinished runs, after its record says so.
        """
        new = replace(self, run=moved(self.work, self.run, state, **detail))
        if state in FINISHED:
            self.work.strike(new.run)
        return new
