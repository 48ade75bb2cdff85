"""The commit of an undo: what a run took out comes back, in the turn of the runs that depend on each other."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from shlex import quote
from typing import Any

from firnline.errors import RefusedForSafety
from firnline.journal.lease import Lease
from firnline.journal.runs import Run
from firnline.journal.states import RunState
from firnline.ops.remember import Memory
from firnline.ops.workplace import Workplace
from firnline.ports.catalogs import Attempt
from firnline.ports.formats import Edited, FenceKind, State


class Undoing:
    """Records each try before it is sent, and remembers the run as it moves."""

    def __init__(self, work: Workplace, lease: Lease, run: Run, removal: Mapping[str, Any]) -> None:
        self.work = work
        self.lease = lease
        self.run = run
        self.removal = removal
        self.memory = Memory(work, run.id)

    def edit(self, state: State) -> Edited | None:
        self.work.same_table(state, self.run)
        forgets = self.memory.returning(state, self.removal)
        edited = self.work.source.format.restore(state, self.removal, self.work.now(), amendment=forgets)
        first = next((run for run in self.work.runs(state) if self._needs(run, state, edited)), None)
        if first is not None:
            raise RefusedForSafety(
                f"{', '.join(edited.left_alone[:5])} cannot come back without what {first.id} took out",
                hint=f"nothing was changed; `firnline undo {quote(str(first.id))}` first",
            )
        return edited

    def _needs(self, other: Run, state: State, edited: Edited) -> bool:
        """Tells whether something is left alone only because another run took the branch that it belongs to: undone
        after this one, that would bring the branch back without it. Only where branches are folders: elsewhere it is
        a ref whose snapshot is gone, and that is said.
        """
        folders = state.capabilities.fence is FenceKind.NONE
        if not folders or not edited.left_alone or other.id.stamp == self.run.id.stamp:
            return False
        with suppress(RefusedForSafety):
            states = (self.work.source.format.with_removal(state, each) for each in other.removals)
            return any(len(self._left_alone(each)) < len(edited.left_alone) for each in states)
        return False

    def _left_alone(self, state: State) -> tuple[str, ...]:
        return self.work.source.format.restore(state, self.removal, self.work.now()).left_alone

    def before_send(self, base: State, edited: Edited, attempt: Attempt) -> None:
        self.lease.renew()
        detail = {**attempt.proof, "left_alone": list(edited.left_alone), "history": self.memory.noted}
        self.run = self.run.moved(self.work.store, RunState.UNDOING, self.work.now(), **detail)
        self.lease.check()
