"""Planning a run and carrying it: what `plan`, `expire`, `commit`, `purge`, `undo` and `resume` do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firnline.app.places import Places, Table
from firnline.errors import BlastRadiusExceeded, FirnlineError, RefusedForSafety
from firnline.journal.layout import RunId
from firnline.journal.lease import Lease
from firnline.journal.runs import Run
from firnline.model.times import parse_duration, parse_instant
from firnline.ops.looking.files import check_listing_name, write_listing
from firnline.ops.neighbours.around import Around, around
from firnline.ops.runs.advance import (
    RunStatus,
    advance,
    advance_all,
    commit_only,
    purge_all,
    purge_only,
    report,
    settle_halfway_runs,
    undo,
)
from firnline.ops.runs.decision import policy_in_force
from firnline.ops.runs.measured import measured
from firnline.ops.runs.plan import Planned, grace_of, make_plan
from firnline.ops.runs.presence import without_false_promise
from firnline.ops.runs.purge import Deleter
from firnline.ops.runs.record import save_plan
from firnline.ops.table.context import TableContext, refuse_copy
from firnline.plans.explain import explain
from firnline.plans.plan import Conflict, Plan
from firnline.plans.request import Request
from firnline.ports.catalogs import TableSource

if TYPE_CHECKING:
    from firnline.ports.formats import State

Moment = str | int
OUTSIDE_LATER = (
    "files outside the table's own folders go only if the purge is told so too: `firnline purge --include-outside`, "
    "or include-outside: true in firnline.yaml"
)


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan to look at: in a notebook as a page, in a program through `plan`, `to_json()` and `files()`."""

    planned: Planned
    plan: Plan

    def to_json(self) -> dict[str, Any]:
        return self.plan.to_json()

    def files(self) -> Iterator[dict[str, Any]]:
        """Yields the files that would go, one by one: path, kind, size."""
        survey = self.planned.survey
        for batch in () if survey is None else survey.victim_batches():
            for row in batch.to_pylist():
                yield {"path": row["key"], "kind": row["kind"], "size": row["size"]}

    def write_files(self, out: str | Path) -> int:
        """Returns the number of files written to `out`, a .parquet or .csv."""
        return write_listing(self.planned.survey, Path(out), self.planned.state.owned)

    def __str__(self) -> str:
        return explain(self.plan).to_text()

    def _repr_html_(self) -> str:
        return explain(self.plan).to_html()


class Runs(Places):
    """The runs of tables."""

    def plan(
        self,
        table: Table,
        *,
        older_than: Moment | None = None,
        retain_last: int | None = None,
        now: Moment | None = None,
        keep: Mapping[str, str] | None = None,
        include_outside: bool | None = None,
        blast_radius: float | None = None,
        new_history: bool = False,
        drop: Iterable[str] = (),
        save: bool = False,
        files: str | Path | None = None,
    ) -> PlanView:
        """Returns what a run would do, or one that drops refs. Changes nothing; `save` writes the plan into a new run
        record.
        """
        if files is not None:
            check_listing_name(Path(files))
        asked = request_of(older_than, retain_last, now, keep, include_outside, blast_radius, new_history=new_history)
        request = replace(asked, drop=tuple(drop))
        work = self.table_context(table)
        planned = self._planned(work, request)
        plan = planned.plan
        if save:
            plan = self._saved(work, planned, grace=None, meant=False)
        view = PlanView(planned, plan)
        if files is not None:
            view.write_files(files)
        return view

    def expire(
        self,
        table: Table,
        *,
        older_than: Moment | None = None,
        retain_last: int | None = None,
        now: Moment | None = None,
        keep: Mapping[str, str] | None = None,
        include_outside: bool | None = None,
        blast_radius: float | None = None,
        clean: bool = False,
        new_history: bool = False,
        sole_writer: bool = False,
        grace: str | None = None,
        break_lease: bool = False,
        confirm: Callable[[Plan], None] = lambda plan: None,
    ) -> RunStatus | PlanView:
        """Returns the run: planned, committed, and purged if its grace is over. A plan where nothing expires.

        `confirm` is shown the very plan that is then carried out; it raises to stop.
        """
        request = request_of(
            older_than, retain_last, now, keep, include_outside, blast_radius, clean, new_history, sole_writer
        )
        return self._carried_through(self.table_context(table), request, grace, break_lease, confirm)

    def drop(
        self,
        table: Table,
        refs: Iterable[str],
        *,
        include_outside: bool | None = None,
        blast_radius: float | None = None,
        sole_writer: bool = False,
        grace: str | None = None,
        break_lease: bool = False,
        confirm: Callable[[Plan], None] = lambda plan: None,
    ) -> RunStatus | PlanView:
        """Returns the run that drops tags or branches with the files that nothing else needs; nothing else goes."""
        asked = request_of(include_outside=include_outside, blast_radius=blast_radius, sole_writer=sole_writer)
        request = replace(asked, drop=tuple(refs))
        return self._carried_through(self.table_context(table), request, grace, break_lease, confirm)

    def _carried_through(
        self,
        work: TableContext,
        request: Request,
        grace: str | None,
        break_lease: bool,
        confirm: Callable[[Plan], None],
    ) -> RunStatus | PlanView:
        planned = self._planned(work, request)
        if not planned.plan.stages:
            return PlanView(planned, planned.plan)
        refuse_copy(work.source.name, planned.state)
        if planned.plan.conflict is not None:
            raise RefusedForSafety(planned.plan.conflict.why, hint=planned.plan.conflict.hint)
        if planned.plan.refused:
            raise BlastRadiusExceeded(planned.plan.refused, hint="raise --blast-radius, if that is really meant")
        _ = work.source.commits  # raises where nothing can be committed, before anything is written
        confirm(planned.plan)
        self._prepare(work, planned.state, deletes=True)
        plan = self._saved(work, planned, grace, meant=True)
        planned.close()
        return self.advance(str(plan.run), break_lease=break_lease, include_outside=request.include_outside)

    def _planned(self, work: TableContext, request: Request) -> Planned:
        remember = self.memory.of(work.store)

        def ask_others(state: State, everywhere: bool) -> Around:
            try:
                return around(work, state, everywhere=everywhere)
            except FirnlineError as problem:  # a plan can be looked at; what would act asks again, and stops
                return Around(None, Conflict(problem.message, problem.hint))

        measure = partial(measured, work.store)
        planned = make_plan(
            work.source, self.config, request, self._choose, ask_others, measure, self.clock(), remember
        )
        planned = without_false_promise(planned, work.source.format, work.store)
        return self._noted(planned, work.source) if planned.plan.stages else planned

    def _noted(self, planned: Planned, source: TableSource) -> Planned:
        """Returns the plan with what the operator should know of the store before anything is deleted there."""
        notes = (*self._warnings(source.name, planned.state.location), *self._vouched(planned.state))
        configured = policy_in_force(planned.state, source.name, self.config, Request()).include_outside.value
        if planned.request.include_outside and not configured:
            notes = (*notes, OUTSIDE_LATER)
        return replace(planned, plan=replace(planned.plan, notes=(*planned.plan.notes, *notes)))

    def _saved(self, work: TableContext, planned: Planned, grace: str | None, *, meant: bool) -> Plan:
        effective = policy_in_force(planned.state, work.source.name, self.config, planned.request)
        asked_ms = effective.grace.value if grace is None else parse_duration(grace)
        grace_ms = grace_of(planned.state, planned.request, asked_ms)
        root = work.root(planned.state)
        return save_plan(
            planned, work.source.format, work.store, root, work.sealing(True), grace_ms, self.clock(), meant=meant
        )

    def advance(self, run: str, *, break_lease: bool = False, include_outside: bool | None = None) -> RunStatus:
        """Returns the run, taken as far as it may go now.

        `include_outside`: whether files outside the table's own folders may go; None where the configuration decides.
        What was said when the run was planned is not asked.
        """
        with self._on_run(run, break_lease, include_outside) as (work, lease, found):
            return advance(work, lease, found, self._deleter(work.source.name, found))

    def commit(self, run: str, *, break_lease: bool = False) -> RunStatus:
        with self._on_run(run, break_lease, None) as (work, lease, found):
            return commit_only(work, lease, found)

    def undo(self, run: str, *, break_lease: bool = False, include_outside: bool | None = None) -> RunStatus:
        """Returns the run, undone: its snapshots, refs and log are back. Raises once its purge has started."""
        with self._on_run(run, break_lease, include_outside, deletes=False) as (work, lease, found):
            return report(work, undo(work, lease, found))

    def purge(self, run: str, *, break_lease: bool = False, include_outside: bool | None = None) -> RunStatus:
        """Returns the run, purged where its grace is over. Raises where it was never committed."""
        with self._on_run(run, break_lease, include_outside) as (work, lease, found):
            return purge_only(work, lease, found, self._deleter(work.source.name, found))

    def purge_table(
        self, table: Table, *, break_lease: bool = False, include_outside: bool | None = None
    ) -> list[RunStatus]:
        """Returns the committed runs of a table, each purged where it may be."""
        return self._on_table(table, break_lease, include_outside, purge_all)

    def resume(
        self, table: Table, *, break_lease: bool = False, include_outside: bool | None = None
    ) -> list[RunStatus]:
        """Returns every unfinished run of a table, each taken as far as it may go now."""
        return self._on_table(table, break_lease, include_outside, advance_all)

    def _on_table(
        self,
        table: Table,
        break_lease: bool,
        include_outside: bool | None,
        act: Callable[[TableContext, Lease, Deleter], list[RunStatus]],
    ) -> list[RunStatus]:
        """Holds the lease only where there is something to do: looking at every table must not stop anybody."""
        work = replace(self.table_context(table), include_outside=include_outside)
        state = work.source.load()
        unfinished = [run for run in work.runs(state) if not run.is_finished]
        if not unfinished:
            return []
        largest = max(unfinished, key=lambda run: int(run.plan["victims"]["files"]))
        self._prepare(work, state, deletes=True)
        with work.lease(state, break_lease) as (work, lease):
            return act(work, lease, self._deleter(work.source.name, largest))

    def runs(self, table: Table) -> list[RunStatus]:
        """Returns every recorded run of a table, in the order of planning. Changes nothing."""
        work = self.table_context(table)
        return [report(work, run) for run in work.runs(work.source.load())]

    def run(self, run: str) -> RunStatus:
        work = self._of_run(RunId.parse(run))
        return report(work, work.run(RunId.parse(run))[1])

    @contextmanager
    def _on_run(
        self, run: str, break_lease: bool, include_outside: bool | None, *, deletes: bool = True
    ) -> Iterator[tuple[TableContext, Lease, Run]]:
        """Holds the lease and hands out the run as it is then: another process may have moved it just before."""
        named = RunId.parse(run)
        work = replace(self._of_run(named), include_outside=include_outside)
        state, _ = work.run(named)
        self._prepare(work, state, deletes=deletes)
        with work.lease(state, break_lease) as (work, lease):
            found = work.run(named)[1]
            settle_halfway_runs(work, lease, found)
            yield work, lease, found


def request_of(
    older_than: Moment | None = None,
    retain_last: int | None = None,
    now: Moment | None = None,
    keep: Mapping[str, str] | None = None,
    include_outside: bool | None = None,
    blast_radius: float | None = None,
    clean: bool = False,
    new_history: bool = False,
    sole_writer: bool = False,
) -> Request:
    return Request(
        keep or {},
        instant(older_than),
        retain_last,
        instant(now),
        include_outside,
        blast_radius,
        clean,
        new_history,
        sole_writer,
    )


def instant(moment: Moment | None) -> int | None:
    return moment if moment is None or isinstance(moment, int) else parse_instant(moment)
