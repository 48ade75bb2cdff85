"""Planning a run and carrying it out: what `plan`, `expire`, `commit`, `purge`, `undo` and `resume` do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from firnline.app.naming import Table
from firnline.app.verbs.plan_views import PlanView
from firnline.app.verbs.planning import Planning
from firnline.errors import FirnlineError, RefusedForSafety, UsageError
from firnline.journal.events import RunState
from firnline.journal.lease import Lease
from firnline.journal.runs import Run, refuse_changed_run
from firnline.model.times import format_instant
from firnline.ops.runs.plan import (
    Planned,
)
from firnline.ops.table.context import TableContext, refuse_copy
from firnline.ops.table.sources import LocatedTable
from firnline.plans.plan import Plan
from firnline.plans.request import Request
from firnline.ports.catalogs import CommitByLibrary, TableName
from firnline.ports.formats import UndoWindow

if TYPE_CHECKING:  # what acts is loaded where a run acts: a small plan is mostly imports
    from firnline.journal.outcomes import OutcomeAccount
    from firnline.ops.runs.leased import LeasedRun
    from firnline.ops.runs.purge import Deleter
    from firnline.ops.runs.status import RunStatus


@dataclass(frozen=True, slots=True)
class Leave:
    """What the operator allows now, whatever a run's record says: to take the lease of a process that may be alive, and
    to delete outside the table's own folders. None leaves that to the configuration.
    """

    break_lease: bool = False
    include_outside: bool | None = None


@dataclass(frozen=True, slots=True)
class Runs(Planning):
    """The runs of tables."""

    def plan(self, table: Table, request: Request, save: bool, files: str | Path | None) -> PlanView:
        """Returns what a run would do. Changes nothing; `save` writes the plan into a new run record."""
        if files is not None:
            from firnline.ops.looking.files import check_listing_name

            check_listing_name(Path(files))
        work = self.places.table_context(table)
        planned = beside_waiting(work, self._planned(work, request))
        view = PlanView(planned, self.saved(work, planned, meant=False) if save else planned.plan, work)
        if files is not None:
            view.write_files(files)
        return view

    def carry_out(
        self, table: Table, request: Request, confirm: Callable[[Plan], None], break_lease: bool
    ) -> RunStatus | PlanView:
        """Returns the run, planned and taken as far as it may go now; a plan where nothing expires.

        `confirm` is shown the very plan that is then carried out; it raises to stop. A run that was asked for in the
        same words and still waits to be called off goes on instead; as long as it waits, nobody is asked.
        """
        work, leave = self.places.table_context(table), Leave(break_lease, request.include_outside)
        waiting = self.to_join(work, request)

        from firnline.ops.runs.status import status_of

        if waiting is not None and self.places.clock() < (waiting.commit_due_ms or 0):
            # It is looked at and not advanced: it may come due meanwhile, and nobody was asked.
            due = f"the end of the time to undo at {format_instant(waiting.commit_due_ms or 0)}"
            return status_of(work, waiting, f"{due}; it was asked for before, and nothing new is planned")
        planned = self._planned(work, request)
        if not planned.plan.stages:
            return PlanView(planned, planned.plan, work)
        _refuse_hopeless(work, planned)
        if planned.plan.refusal is not None:
            raise planned.plan.refusal

        from firnline.app.run_names import joined

        if waiting is not None:
            confirm(joined(planned.plan, waiting, self.places.clock()))
            planned.close()
            return self.advance(str(waiting.id), leave)
        confirm(planned.plan)
        return self.advance(str(self.recorded(work, planned, meant=True).run), leave)

    def to_join(self, work: TableContext, request: Request, *, searched: bool = False) -> Run | None:
        """Returns the run of the table that waits and was asked for in the same words; None where there is none."""
        if isinstance(work.source, LocatedTable) and work.source.undo is UndoWindow.AFTER_COMMIT:
            return None  # no run waits there: the table is not read for it
        runs = work.runs(work.source.load())

        from firnline.app.run_names import run_to_join

        return run_to_join(runs, request, self.places.clock(), searched=searched)

    def proposed(self, work: TableContext, planned: Planned, *, meant: bool = False) -> Plan:
        """Returns the plan, saved as a run that waits for `approve` unless it is meant already; one without a run if
        nothing expires, or if it would be refused.
        """
        if planned.plan.stages:
            _refuse_hopeless(work, planned)
        if not planned.plan.stages or planned.plan.refusal is not None:
            planned.close()
            return planned.plan
        return self.recorded(work, planned, meant=meant)

    def approve(self, run: str, by: str | None = None, note: str | None = None) -> None:
        """Writes into the record that the operator wants the run, which was only planned: any process that resumes may
        commit it from then on. `by`: the person who looked at it, where the policy demands one.

        Raises LeaseHeld where another process moved it meanwhile, UsageError unless it waits or where a person approved
        it before, and UnreadableMetadata where the record is not the one that this user saved: another plan was shown.
        RefusedForSafety where this machine's clock is off: the time to undo begins with the approval.
        """
        from firnline.app.run_names import run_meant
        from firnline.ops.runs.moving import moved

        named = run_meant(self.places, run)
        work = self.places.of_run(named)
        state, found = work.run(named)
        refuse_changed_run(found)
        if found.state is not RunState.PLANNED:
            raise UsageError(f"{run} is {found.state}: it cannot be approved", hint="`firnline runs show RUN`")
        if found.plan["refused"] is not None:
            raise RefusedForSafety(f"{run} would be refused: {found.plan['refused']}", hint="plan again, within bounds")
        if by is not None:
            refuse_approved(found)
            moved(work.by_the_store(state), found, RunState.PLANNED, approved=True, by=by, note=note)
        elif not found.is_meant:
            moved(work.by_the_store(state), found, RunState.PLANNED, approved=True)

    def call_off(self, run: str, why: str) -> None:
        """Ends a run that waits for `approve`; its record says why. One that another process carried on meanwhile is
        left to that one.
        """
        from firnline.ops.runs.advance import called_off

        with self._leased(run, Leave(), deletes=False, begins=False) as leased:
            if leased.run.state is RunState.PLANNED:
                called_off(leased, why)

    def recorded(self, work: TableContext, planned: Planned, *, meant: bool) -> Plan:
        """Returns the plan as it was saved, in a store that can carry the run."""
        self.places.stores.prepare(work, planned.state, deletes=True)
        plan = self.saved(work, planned, meant=meant)
        planned.close()
        return plan

    def saved(self, work: TableContext, planned: Planned, *, meant: bool) -> Plan:
        """Returns the plan with the run it was saved as. Raises RefusedForSafety where this machine's clock is off: the
        instants that it made of ages would be believed by every process that goes on.
        """
        from firnline.journal.news import news_of_plan
        from firnline.ops.runs.record import save_plan

        root, now_ms = work.root(planned.state), work.by_the_store(planned.state).now()
        enter, table_format = partial(work.enter, planned.state), work.source.format
        sealing, address = work.sealing(True), work.address
        plan = save_plan(planned, table_format, work.store, root, sealing, now_ms, enter, address=address, meant=meant)
        if work.watch.observers:
            work.watch.tell(news_of_plan(str(plan.run), plan.to_json(), now_ms))
        return plan

    def advance(self, run: str, leave: Leave) -> RunStatus:
        """Returns the run, taken as far as it may go now. What was said when the run was planned is not asked."""
        from firnline.ops.runs.advance import advance

        with self._leased(run, leave) as leased:
            return advance(leased, self._deleter(leased.work.source.name, leased.run))

    def commit(self, run: str, leave: Leave) -> RunStatus:
        from firnline.ops.runs.advance import commit_only

        with self._leased(run, leave) as leased:
            return commit_only(leased)

    def undo(self, run: str, leave: Leave) -> RunStatus:
        """Returns the run, undone; `run` may also be a table, of which the last run is meant."""
        from firnline.app.run_names import run_to_undo
        from firnline.ops.runs.advance import undo
        from firnline.ops.runs.status import status_of

        with self._leased(str(run_to_undo(self.places, run)), leave, deletes=False) as leased:
            return status_of(leased.work, undo(leased).run)

    def purge(self, run: str, leave: Leave) -> RunStatus:
        from firnline.ops.runs.advance import purge_only

        with self._leased(run, leave) as leased:
            return purge_only(leased, self._deleter(leased.work.source.name, leased.run))

    def purge_table(
        self, table: Table, leave: Leave, meant: Callable[[Run], bool] = lambda run: True
    ) -> list[RunStatus]:
        """Returns the runs of the table that are meant and committed, each purged where it may be."""
        from firnline.ops.runs.advance import purge_all

        return self._on_table(table, leave, partial(purge_all, meant=meant))

    def resume(self, table: Table, leave: Leave) -> list[RunStatus]:
        from firnline.ops.runs.advance import advance_all

        return self._on_table(table, leave, advance_all)

    def _on_table(
        self, table: Table, leave: Leave, act: Callable[[TableContext, Lease, Deleter], list[RunStatus]]
    ) -> list[RunStatus]:
        """Holds the lease only where there is something to do: looking at every table must not stop anybody."""
        work = replace(self.places.table_context(table), include_outside=leave.include_outside)
        state = work.source.load()
        unfinished = [run for run in work.runs(state) if not run.is_finished]
        if not unfinished:
            return []
        for run in unfinished:
            with suppress(FirnlineError):  # one that left no entry, or whose entry was removed; the run goes on anyway
                work.enter(state, run.id)
        largest = max(unfinished, key=lambda run: int(run.plan["victims"]["files"]))
        self.places.stores.prepare(work, state, deletes=True)
        with self.places.alone(work.root(state)), work.lease(state, leave.break_lease) as (work, lease):
            return act(work, lease, self._deleter(work.source.name, largest))

    def of_table(self, table: Table) -> list[RunStatus]:
        """Returns every recorded run of a table, in the order of planning. Changes nothing."""
        work = self.places.table_context(table)

        from firnline.ops.runs.status import status_of

        return [status_of(work, run) for run in work.runs(work.source.load())]

    def unfinished(self, table: Table) -> list[RunStatus]:
        """Returns the runs of a table that have not ended, in the order of planning. Changes nothing."""
        work = self.places.table_context(table)

        from firnline.ops.runs.status import status_of

        return [status_of(work, run) for run in work.runs(work.source.load()) if not run.is_finished]

    def stamps(self, table: Table) -> tuple[frozenset[str], frozenset[str]]:
        """Returns the stamps of the runs of a table that have not ended, and of those that have, by whatever name of it
        they were planned.
        """
        work = self.places.table_context(table)
        runs = work.recorded(work.source.load())
        ended = frozenset(run.id.stamp for run in runs if run.is_finished)
        return frozenset(run.id.stamp for run in runs) - ended, ended

    def named(self, run: str) -> RunStatus:
        from firnline.app.run_names import run_meant

        meant = run_meant(self.places, run)
        work = self.places.of_run(meant)

        from firnline.ops.runs.status import status_of

        return status_of(work, work.run(meant)[1])

    def account(self, run: str, shown: int) -> OutcomeAccount:
        """Returns what became of each file of a run, so many of them one by one."""
        from firnline.app.run_names import run_meant
        from firnline.journal.outcomes import outcome_account

        meant = run_meant(self.places, run)
        work = self.places.of_run(meant)
        return outcome_account(work.store, work.run(meant)[1].folder, shown)

    @contextmanager
    def _leased(self, run: str, leave: Leave, *, deletes: bool = True, begins: bool = True) -> Iterator[LeasedRun]:
        """Holds the lease and hands out the run as it is then: another process may have moved it just before."""
        from firnline.app.run_names import run_meant
        from firnline.ops.runs.advance import settle_halfway_runs
        from firnline.ops.runs.leased import LeasedRun
        from firnline.ops.runs.moving import failures_told

        named = run_meant(self.places, run)
        work = replace(self.places.of_run(named), include_outside=leave.include_outside)
        state, _ = work.run(named)
        self.places.stores.prepare(work, state, deletes=deletes)
        alone = self.places.alone(work.root(state), begins=begins)
        with alone, work.lease(state, leave.break_lease) as (work, lease):
            leased = LeasedRun(work, lease, work.run(named)[1])
            with failures_told(work, leased.run):
                settle_halfway_runs(leased)
                yield leased

    def _deleter(self, name: TableName, run: Run) -> Deleter:
        """Returns the power to delete what a run's list names, or lists no longer than that. How many go at once is
        told by where the record says that the table is; how fast they go, by each file's own place.
        """
        from firnline.ops.runs.purge import Deleter

        stores, engines = self.places.stores, self.places.engines
        many = engines.delete_many(name, run.plan["location"], run.plan["victims"]["files"])
        return Deleter(stores.delete(name, run.folder.root), many, stores.remove_empty())


def beside_waiting(work: TableContext, planned: Planned) -> Planned:
    """Returns the plan with the runs on the table that wait, and notes of them: what they took out is not in it any
    more. A plan can be looked at where records cannot be read; what would act reads them again, and stops.
    """
    from firnline.ops.runs.status import waiting_note

    with suppress(FirnlineError):
        waiting = [run for run in work.runs(planned.state) if not run.is_finished]
        named, notes = tuple(str(run.id) for run in waiting), tuple(map(waiting_note, waiting))
        return replace(planned, plan=replace(planned.plan, waiting=named, notes=(*planned.plan.notes, *notes)))
    return planned


def _refuse_hopeless(work: TableContext, planned: Planned) -> None:
    """Raises for a table that is a copy of another one, or to which nothing can be committed: before anything is
    written.
    """
    refuse_copy(work.source.name, planned.state)
    commits = work.source.commits
    if isinstance(commits, CommitByLibrary):
        commits.refuse_without_library(planned.state)


def refuse_approved(run: Run) -> None:
    """Raises UsageError where a person approved the run: a second word would be written down as who wanted it."""
    if run.approval is not None:
        again = f"`firnline resume {quote(str(run.id))}` takes it further"
        raise UsageError(f"{run.id} was approved before, by {run.approval.detail['by']}", hint=again)
