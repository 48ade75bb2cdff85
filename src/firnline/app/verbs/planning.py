"""Planning a run: what is decided of a table, what its files say of it, and what an operator should know."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from firnline.app.naming import Table
from firnline.app.places import Places
from firnline.errors import FirnlineError, UsageError
from firnline.ops.neighbours.around import Around, around
from firnline.ops.neighbours.others import FindOthers, others_now
from firnline.ops.readers.needs import reader_needs
from firnline.ops.runs.decision import Settled, policy_in_force
from firnline.ops.runs.measured import measured
from firnline.ops.runs.plan import (
    AskReaders,
    ChooseArchive,
    CountForgotten,
    Draft,
    Planned,
    decide_plan,
    draft_plan,
    finish_plan,
)
from firnline.ops.runs.presence import without_false_promise
from firnline.ops.table.context import TableContext
from firnline.ops.table.versions import sized_versions
from firnline.ops.tiers.choosing import choose_archive
from firnline.ops.tiers.sizing import with_archive_size
from firnline.plans.plan import Archive, Conflict, Plan
from firnline.plans.request import Request
from firnline.ports.catalogs import TableSource
from firnline.ports.engines import Survey

if TYPE_CHECKING:  # what acts is loaded where a run acts: a small plan is mostly imports
    from firnline.plans.graph.facts import SnapshotGraph
    from firnline.plans.metadata_versions import MetadataVersions
    from firnline.policy.readers import ReaderNeeds
    from firnline.ports.formats import State

OUTSIDE_LATER = (
    "files outside the table's own folders go only if the purge is told so too: `firnline purge --include-outside`, "
    "or include-outside: true in firnline.yaml"
)


@dataclass(frozen=True, slots=True)
class _Steps:
    """An instant, and what is asked of a table for a decision at it."""

    now_ms: int
    ask_readers: AskReaders
    forgotten: CountForgotten
    handed: ChooseArchive


def with_versions(planned: Planned, versions: MetadataVersions | None) -> Planned:
    """Returns the plan, which tells of the versions of its table's metadata."""
    return replace(planned, plan=replace(planned.plan, metadata_versions=versions))


@dataclass(frozen=True, slots=True)
class Planning:
    """Plans of tables. It has no power to delete."""

    places: Places

    def _planned(self, work: TableContext, request: Request) -> Planned:
        """Returns the plan of one table, with the sizes of its metadata's versions."""
        planned = self._bounded(work, request)
        return with_versions(planned, sized_versions(work.source.format, planned.state, work.store))

    def _bounded(self, work: TableContext, request: Request) -> Planned:
        """Returns the plan; where the operator set a bound, that of the oldest snapshots which it allows."""
        if request.at_most is not None and request.drop:
            raise UsageError("a ref is dropped whole: a bound does not count there", hint="leave `at_most` out")
        planned = self._planned_once(work, request)
        if request.at_most is None:
            return planned

        def plan_oldest(count: int) -> Plan:
            with closing(self._planned_once(work, replace(request, oldest=count))) as tried:
                return tried.plan

        from firnline.ops.runs.bounded import bound_note, most_within, refuse_more

        oldest = most_within(planned.plan, request.at_most, plan_oldest)
        if oldest is None:
            return planned
        planned.close()
        bounded = self._planned_once(work, replace(request, oldest=oldest))
        refuse_more(bounded.plan, request.at_most)
        note = bound_note(bounded.plan, len(planned.plan.expire), request.at_most)
        return replace(bounded, plan=replace(bounded.plan, notes=(*bounded.plan.notes, note)))

    def _planned_once(self, work: TableContext, request: Request) -> Planned:
        draft = self.draft(work, request)
        if draft.walk is None:
            return self.finished(work, draft, None)
        engine = self.places.engines.choose(draft.state, work.source.format, draft.engine, draft.walk.entries)
        (survey,) = engine.surveys([draft.walk])
        if isinstance(survey, FirnlineError):
            raise survey
        return self.finished(work, draft, survey, engine.name)

    def graph(self, table: Table, request: Request) -> SnapshotGraph:
        """Returns the snapshots of a table before and after a run. No file is looked for. Changes nothing."""
        if request.at_most is not None:
            raise UsageError("a graph knows of no bytes, so that a bound has no meaning", hint="leave `at_most` out")
        work = self.places.table_context(table)
        steps = self._steps(work, request)
        decided = decide_plan(
            work.source, self.places.config, request, steps.ask_readers, steps.now_ms, steps.forgotten, steps.handed
        )

        from firnline.ops.looking.graphs import graph_of

        return graph_of(work.source.format, decided.state, decided.settled, decided.plan)

    def _steps(self, work: TableContext, request: Request) -> _Steps:
        """Returns what a decision asks about a table, all at one instant."""
        now_ms = self.places.clock()

        def ask_readers(state: State) -> ReaderNeeds:
            return reader_needs(work, state, request, now_ms)

        def forgotten(state: State, bound_ms: int) -> int:
            from firnline.ops.history.reading import count_forgotten

            return count_forgotten(work.source, state, work.store, bound_ms)

        def handed(state: State, settled: Settled) -> Archive | None:
            decided = settled.decision
            return choose_archive(work, state, request, set(decided.expired), set(decided.expired_refs))

        return _Steps(now_ms, ask_readers, forgotten, handed)

    def draft(self, work: TableContext, request: Request, find: FindOthers = others_now) -> Draft:
        """Returns what is decided of a table before any unit of it is opened; the other tables are those that `find`
        finds.
        """

        def ask_others(state: State, everywhere: bool) -> Around:
            try:
                return around(work, state, everywhere=everywhere, find=find)
            except FirnlineError as problem:  # a plan can be looked at; what would act asks again, and stops
                return Around(None, Conflict(problem.message, problem.flags))

        remember, steps = self.places.memory.of(work.store), self._steps(work, request)
        draft = draft_plan(
            work.source,
            self.places.config,
            request,
            ask_others,
            steps.ask_readers,
            steps.now_ms,
            remember,
            steps.forgotten,
            steps.handed,
        )
        if draft.walk is None:
            return draft
        entries = work.source.format.entries(draft.state)
        return replace(draft, walk=replace(draft.walk, entries=entries, server=work.server))

    def finished(self, work: TableContext, draft: Draft, survey: Survey | None, engine: str = "") -> Planned:
        """Returns the plan with what was found of the table's files; None where nothing had to be looked for."""
        if survey is None:
            planned = Planned(draft.plan, None, draft.state, draft.request, settled=draft.settled)
        else:
            planned = finish_plan(draft, survey, engine, partial(measured, work.store))
        planned = without_false_promise(planned, work.source.format, work.store)
        planned = replace(planned, plan=with_archive_size(work, planned.plan, planned.state))
        return self._noted(planned, work.source) if planned.plan.stages else planned

    def _noted(self, planned: Planned, source: TableSource) -> Planned:
        """Returns the plan with what the operator should know of the store before anything is deleted there."""
        warnings = self.places.stores.warnings(source.name, planned.state.location)
        notes = (*warnings, *self.places.vouched(planned.state))
        configured = policy_in_force(planned.state, source.name, self.places.config, Request()).include_outside.value
        if planned.request.include_outside and not configured:
            notes = (*notes, OUTSIDE_LATER)
        return replace(planned, plan=replace(planned.plan, notes=(*planned.plan.notes, *notes)))
