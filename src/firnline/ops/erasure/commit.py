"""Committing an erasure: trimmed snapshots take the places of those that name the files, in one commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

from firnline.errors import RefusedForSafety, TableMoved
from firnline.journal.events import OPEN, RunState
from firnline.journal.runs import refuse_edited
from firnline.model.locations import identity
from firnline.model.removals import Removal
from firnline.ops.erasure.finding import begin_with, erases, refuse_kept
from firnline.ops.neighbours.around import refuse_conflict
from firnline.ops.runs.change import change, version_of
from firnline.ops.runs.forgotten import list_forgotten
from firnline.ops.runs.leased import LeasedRun
from firnline.ops.table.context import refuse_copy
from firnline.plans.erasure import Erasure
from firnline.ports.catalogs import Attempt
from firnline.ports.erasing import Namers, Trimmed
from firnline.ports.formats import Edited, State
from firnline.ports.stores import is_there


def commit_erasure(leased: LeasedRun) -> LeasedRun:
    """Returns the run, committed; or cancelled where no snapshot is left that is as it was.

    Raises TableMoved where a snapshot is not as it was planned; RefusedForSafety where the record
    is not sealed: it says what snapshots begin with, and a forger could give them anything.
    """
    work, run = leased.work, leased.run
    if run.state not in OPEN:
        return leased
    landed = erasure_landed(leased)
    if landed is not None:
        return landed
    refuse_edited(work.store, run)
    if not run.is_sealed:
        raise RefusedForSafety(
            f"the record of {run.id} is not sealed with your key, and it says what snapshots begin with",
            hint=f"`firnline undo {quote(str(run.id))}`, then erase again",
        )
    attempt = _Attempt(leased, run.erasure)
    changed = change(work.source, attempt.edit, attempt.before_send, still=leased.lease.check)
    if changed is None:
        return call_off_erasure(attempt.leased, "no snapshot is left that names the files")
    return _committed(attempt.leased, attempt.leased.run.events[-1].detail)


def erasure_landed(leased: LeasedRun) -> LeasedRun | None:
    """Returns the run, committed, where one of its tries had landed before it could say so."""
    state, commits = leased.load(), leased.work.source.commits
    for event in reversed(leased.run.attempts):
        if commits.landed(event.detail, version_of(state), leased.lease.check):
            return _committed(leased, event.detail)
    after = {each.after for each in leased.run.erasure.trimmed}
    if leased.run.attempts and after & set(begin_with(leased.work.source.format, state).values()):
        return _committed(leased, leased.run.attempts[-1].detail)  # nothing but the commit names what it wrote
    return None


def call_off_erasure(leased: LeasedRun, why: str = "called off") -> LeasedRun:
    """Returns the run, ended before it changed the table. Raises RefusedForSafety once it has."""
    leased.lease.renew()
    if leased.run.state not in OPEN or erasure_landed(leased) is not None:
        raise RefusedForSafety(
            f"{leased.run.id} is committed: what is erased does not come back", hint="`firnline purge` ends it"
        )
    return leased.moved(RunState.CANCELLED, why=why)


def _committed(leased: LeasedRun, detail: Mapping[str, Any]) -> LeasedRun:
    leased.lease.renew()
    work, state = leased.work, leased.work.source.load()
    late = list_forgotten(work, leased.run, state, detail["forgotten"])
    return leased.moved(RunState.COMMITTED, **{**detail, "forgotten_parts": late})


@dataclass
class _Attempt:
    """Records each try before it is sent, and remembers the run as it moves."""

    leased: LeasedRun
    erasure: Erasure
    late: list[str] = field(default_factory=list)

    def edit(self, state: State) -> Edited | None:
        work, run = self.leased.work, self.leased.run
        work.same_table(state, run)
        refuse_copy(work.source.name, state)
        refuse_conflict(work, state)
        self._refuse_changed(state)
        self._refuse_lost_units()
        trimmed = (*self.erasure.trimmed, *self._trimmed_late(state))
        refuse_kept(state, {each.snapshot for each in trimmed}, work.now())
        return erases(work.source.format, state.table).erased(state, trimmed, work.now())

    def _trimmed_late(self, state: State) -> tuple[Trimmed, ...]:
        """Returns snapshots without the files that came since the plan and name them: an append takes over what the one
        before it has, and a table that is appended to every second must lose them all the same.
        """
        work, erasure = self.leased.work, self.erasure
        table_format, files = erases(work.source.format, state.table), set(map(identity, erasure.files))
        came = {each.id for each in state.graph} - set(erasure.snapshots)
        found = table_format.naming(state, files, work.progress, came) if came else Namers()
        if not found.units:
            self.late = []
            return ()
        trimmed = table_format.trimmed(state, files, found, work.store, self.leased.lease.check).snapshots
        units = {each.key for each in found.units} - set(erasure.units)
        self.late = sorted({*units, *(each.before for each in trimmed)})
        return trimmed

    def _refuse_changed(self, state: State) -> None:
        """Raises TableMoved where a snapshot is neither as it was planned nor as it shall be."""
        work, erasure = self.leased.work, self.erasure
        starts = begin_with(work.source.format, state)
        for each in erasure.trimmed:
            if starts.get(each.snapshot, each.before) not in (each.before, each.after):
                raise TableMoved(f"{each.snapshot} of {state.table} is not as it was planned", hint="erase again")

    def _refuse_lost_units(self) -> None:
        """Raises RefusedForSafety where a unit that snapshots are about to begin with is not there.

        1. The units are written, and the run is planned. It lies still for longer than a day.
        2. A search for orphans removes them: nothing names them.
        3. The run commits, and snapshots begin with what is gone.
        """
        work = self.leased.work
        lost = [each for each in self.erasure.written if not is_there(work.store, each)]
        if lost:
            raise RefusedForSafety(
                f"{lost[0]} is gone, which {self.leased.run.id} wrote",
                hint=f"`firnline undo {quote(str(self.leased.run.id))}`, then erase again; nothing was changed",
            )

    def before_send(self, base: State, edited: Edited, attempt: Attempt) -> None:
        self.leased.lease.renew()
        forgotten = [*edited.forgotten, *self.late]
        detail = {**attempt.proof, "removal": Removal().to_json(), "forgotten": forgotten}
        self.leased = self.leased.moved(RunState.COMMITTING, **detail)
        self.leased.lease.check()
