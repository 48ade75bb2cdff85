"""Every verb that takes several tables: each table answers for itself, and one that fails stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from firnline.app.catalogs import Table
from firnline.app.lake_wide.joined import JoinedPlans, Search, with_search
from firnline.app.lake_wide.plans import Act, Drafted, LakePlans
from firnline.app.lake_wide.runs import AnyPlan, Carried, LakeRuns, Proposed
from firnline.app.lake_wide.searches import LakeSearches
from firnline.app.looking import check_table, timeline_of_table
from firnline.app.many import chosen_tables, on_each, on_tables, unless_stopped
from firnline.app.moments import Cutoff, cutoff_ms
from firnline.app.places import Places
from firnline.app.requests import RunOptions, SearchOptions, asked_search, request_of, takes
from firnline.app.run_lists import has_lists
from firnline.app.run_names import joined
from firnline.app.runs import Leave, Runs, beside_waiting
from firnline.app.searches import Examined, Searches
from firnline.app.unfinished import UnfinishedRuns
from firnline.app.verbs.of_several import ComingAnswers, TableAnswers
from firnline.app.verbs.planning import with_versions
from firnline.errors import FirnlineError, UnreadableMetadata, UsageError
from firnline.journal.runs import Run
from firnline.ops.history.timeline import Span, Timeline
from firnline.ops.looking.check import Checked
from firnline.ops.orphans.joining import takes_orphans_alone
from firnline.ops.runs.plan import Planned
from firnline.ops.runs.status import RunStatus
from firnline.ops.table.context import TableContext
from firnline.ops.table.versions import counted_versions, listed_versions
from firnline.plans.answers import Found, TableAnswer
from firnline.plans.orphans import OrphanPlan
from firnline.plans.plan import Plan
from firnline.plans.request import Request
from firnline.ports.catalogs import TableName
from firnline.ports.progress import Silent


@dataclass(frozen=True, slots=True)
class Several:
    """Several tables: names, locations and patterns; every table of every catalog if None. A table for which a verb
    raises, or which a stop did not reach, answers with the reason; so does a catalog that cannot be read.
    """

    places: Places
    runs_of_tables: Runs
    searches: Searches
    named: tuple[Table, ...] | None
    at_once: int

    def __repr__(self) -> str:
        """Returns what tells these tables from others: a notebook shows it, so no catalog is asked for their names."""
        said = "every table of every catalog" if self.named is None else ", ".join(map(str, self.named))
        return f"<firnline verbs on several tables: {said:.200}>"

    # ---- looking: nothing is changed, but for plans that are saved

    @takes(RunOptions)
    def plan(self, *, save: bool = False, orphans: bool = False, **asked: Unpack[RunOptions]) -> ComingAnswers[Plan]:
        """Yields what a run would do to each table; `save` writes each plan into a run record. `orphans`: what no table
        needs goes too, by a listing that is taken first.
        """
        request = _unbounded(request_of(**asked))

        def planned(drafted: Drafted, found: Planned, search: Search | None = None) -> Plan:
            work = drafted.work
            found = found if search is None else with_search(found, search)
            found = with_versions(found, listed_versions(work.source.format, found.state, work.store))
            found = beside_waiting(work, found)
            plan = self._saved(work, found, search) if save else found.plan
            found.close()  # only the figures are kept: files of a thousand tables would not fit
            return plan

        look = self._joined if orphans else self._planned
        return ComingAnswers(unless_stopped(look(request, planned, self.places.interrupted)))

    def check(self) -> ComingAnswers[Checked]:
        """Yields what `check` finds of each table."""
        return ComingAnswers(self._looked_at(lambda name: check_table(self.places, name)))

    def history(self, *, since: Cutoff | None = None, until: Cutoff | None = None) -> ComingAnswers[Timeline]:
        """Yields the days of each table; with the reason where some of its history could not be read."""
        span = Span(cutoff_ms(since), cutoff_ms(until))
        found = self._looked_at(lambda name: timeline_of_table(self.places, name, span))
        return ComingAnswers(map(_with_trouble, found))

    def runs(self, *, everywhere: bool = False) -> ComingAnswers[list[RunStatus]]:
        """Yields the recorded runs of each table; by lists, see `by_lists`, the unfinished ones of tables that have
        any.
        """
        if self.by_lists and not everywhere:
            return ComingAnswers(unless_stopped(self._unfinished.look()))
        return ComingAnswers(self._looked_at(self.runs_of_tables.of_table))

    @property
    def by_lists(self) -> bool:
        """Whether runs are found by the lists of unfinished ones: no table is named, and a records root is configured.
        `everywhere` looks at every table all the same.
        """
        return self.named is None and has_lists(self.places)

    @property
    def _unfinished(self) -> UnfinishedRuns:
        return UnfinishedRuns(self.places, self.runs_of_tables, self.at_once)

    # ---- acting

    @takes(RunOptions)
    def expire(
        self,
        *,
        break_lease: bool = False,
        meant: bool = False,
        orphans: bool = False,
        confirm: Callable[[Sequence[TableAnswer[Plan]]], None] = lambda plans: None,
        **asked: Unpack[RunOptions],
    ) -> TableAnswers[Carried[Plan]]:
        """Returns what became of each table. All of them are planned first; `confirm` is shown the plans, and raises to
        stop. Then each is taken as far as it may go now; `resume` goes on with those that were planned. `meant`: nobody
        is asked, so whatever ends this process, `resume` carries out what it saved. `orphans`: what no table needs goes
        too, by a listing that is taken first, in the same run; in one of its own where nothing expires.
        """
        request = _unbounded(request_of(**asked))

        def propose(drafted: Drafted, found: Planned, search: Search | None = None) -> Proposed[Plan]:
            found = with_versions(found, counted_versions(drafted.work.source.format, found.state))
            waiting = self.runs_of_tables.to_join(drafted.work, request, searched=orphans)
            if waiting is not None:
                found.close()
                return _joining(found.plan, waiting, self.places.clock())
            found = found if search is None else with_search(found, search)
            plan = self._saved_alone(found, search, meant)
            plan = plan or self.runs_of_tables.proposed(drafted.work, found, meant=meant)
            return Proposed(plan, plan.run, plan.refusal, search if isinstance(search, FirnlineError) else None)

        def confirmed(plans: Sequence[TableAnswer[Plan]]) -> bool:
            confirm(plans)
            return True

        def proposing(saved: list[str]) -> Iterator[TableAnswer[Proposed[Plan]]]:
            planned = self._joined if orphans else self._planned
            return planned(request, noting(propose, saved), lambda: False)

        return self._carry_out(proposing, confirmed, Leave(break_lease, request.include_outside))

    def _saved(self, work: TableContext, found: Planned, search: Search | None) -> Plan:
        """Returns the plan with the run that it was saved as, which waits."""
        return self._saved_alone(found, search, meant=False) or self.runs_of_tables.saved(work, found, meant=False)

    def _saved_alone(self, found: Planned, search: Search | None, meant: bool) -> Plan | None:
        """Returns the plan with the run that removes what a search found of a table on which nothing expires; None
        where something does, or where there is nothing to remove.
        """
        if not isinstance(search, Examined) or not takes_orphans_alone(found.plan):
            return None
        return replace(found.plan, run=self.searches.saved(search, meant=meant).run)

    @takes(SearchOptions)
    def orphans(
        self,
        *,
        confirm: Callable[[Sequence[TableAnswer[OrphanPlan]]], bool] = lambda plans: False,
        **asked: Unpack[SearchOptions],
    ) -> TableAnswers[Carried[OrphanPlan]]:
        """Returns what no table needs of the folders of each table, and the runs that remove it. `confirm` is shown all
        of it; unless it returns True the plans are saved and wait. `asked` are the options of `Lake.orphans`.
        """
        search, terms = asked_search(asked)

        def proposing(saved: list[str]) -> Iterator[TableAnswer[Proposed[OrphanPlan]]]:
            chosen, unread = self._shrinkable()
            yield from unread
            searches = LakeSearches(self.searches, self.at_once)

            def propose(examined: Examined) -> Proposed[OrphanPlan]:
                plan, _ = self.searches.carried(examined, terms)
                return Proposed(plan, plan.run)

            def conclude(some: Sequence[Examined]) -> Iterator[TableAnswer[Proposed[OrphanPlan]]]:
                return on_each(some, noting(propose, saved), self.at_once, lambda: False, Silent())

            yield from searches.each(chosen, search, terms, conclude)

        return self._carry_out(proposing, confirm, terms.leave)

    def purge(
        self,
        *,
        break_lease: bool = False,
        include_outside: bool | None = None,
        everywhere: bool = False,
        meant: Callable[[Run], bool] = lambda run: True,
    ) -> TableAnswers[list[RunStatus]]:
        """Returns the committed runs of each table, each purged where it may be; tables as for `runs`. Those that are
        not `meant` are left as they are.
        """
        leave = Leave(break_lease, include_outside)
        purge = self.runs_of_tables.purge_table
        return TableAnswers(self._carried_on(lambda name: purge(name, leave, meant), everywhere))

    def resume(
        self, *, break_lease: bool = False, include_outside: bool | None = None, everywhere: bool = False
    ) -> TableAnswers[list[RunStatus]]:
        """Returns every unfinished run of each table, each taken as far as it may go now; tables as for `runs`."""
        leave = Leave(break_lease, include_outside)
        return TableAnswers(self._carried_on(lambda name: self.runs_of_tables.resume(name, leave), everywhere))

    def _carried_on(
        self, act: Callable[[TableName], list[RunStatus]], everywhere: bool
    ) -> Iterator[TableAnswer[list[RunStatus]]]:
        return self._unfinished.act(act) if self.by_lists and not everywhere else self._each(act)

    def _looked_at(self, look: Callable[[TableName], Found]) -> Iterator[TableAnswer[Found]]:
        return unless_stopped(self._each(look))

    def _carry_out(
        self,
        proposing: Callable[[list[str]], Iterator[TableAnswer[Proposed[AnyPlan]]]],
        confirm: Callable[[Sequence[TableAnswer[AnyPlan]]], bool],
        leave: Leave,
    ) -> TableAnswers[Carried[AnyPlan]]:
        """Ctrl-C ends the proposing at once: nothing is under way that a boundary protects. What is saved by then, also
        by threads that came to their end meanwhile, is called off.
        """
        runs, saved = LakeRuns(self.places, self.runs_of_tables, self.at_once), list[str]()
        with runs.calling_off(saved, "stopped before anything was asked"):
            proposed = list(proposing(saved))
        return TableAnswers(runs.carry_out(proposed, confirm, leave))

    def _planned(
        self, request: Request, act: Act[Found], interrupted: Callable[[], bool]
    ) -> Iterator[TableAnswer[Found]]:
        chosen, unread = self._shrinkable()
        yield from unread
        yield from LakePlans(self.runs_of_tables, self.at_once).each(chosen, request, act, interrupted)

    def _joined(
        self, request: Request, act: Callable[[Drafted, Planned, Search], Found], interrupted: Callable[[], bool]
    ) -> Iterator[TableAnswer[Found]]:
        chosen, unread = self._shrinkable()
        yield from unread
        plans = LakePlans(self.runs_of_tables, self.at_once)
        yield from JoinedPlans(LakeSearches(self.searches, self.at_once), plans).each(chosen, request, act, interrupted)

    def _shrinkable(self) -> tuple[list[TableName], list[TableAnswer[Any]]]:
        """Returns the tables that something may be taken out of, and catalogs that cannot be read. Where none is named
        these are not the tables of tiers: nothing ever leaves them, and a lake has them wherever it hands over.
        """
        chosen, unread = chosen_tables(self.places, self.named)
        tiers = self.places.config.tiers if self.named is None else ()
        return [each for each in chosen if each.catalog not in tiers], unread

    def _each(
        self, act: Callable[[TableName], Found], interrupted: Callable[[], bool] | None = None
    ) -> Iterator[TableAnswer[Found]]:
        return on_tables(self.places, self.named, act, self.at_once, interrupted)


def _with_trouble(
    answer: TableAnswer[tuple[Timeline, UnreadableMetadata | None]],
) -> TableAnswer[Timeline]:
    timeline, trouble = answer.value or (None, None)
    return TableAnswer(answer.table, timeline, answer.problem or trouble)


def _unbounded(request: Request) -> Request:
    """Returns the request. Raises UsageError for a bound, which is found by plans of one table alone."""
    if request.at_most is not None:
        raise UsageError(
            "at_most or --at-most bounds the run of one table, without orphans", hint="name that table alone"
        )
    return request


def noting(propose: Callable[..., Proposed[AnyPlan]], saved: list[str]) -> Callable[..., Proposed[AnyPlan]]:
    """Returns the same, which notes the run that a plan was saved as; not one that was there before."""

    def proposing(*of: Any) -> Proposed[AnyPlan]:
        found = propose(*of)
        saved.extend(filter(None, [None if found.joins else found.run]))
        return found

    return proposing


def _joining(plan: Plan, run: Run, now_ms: int) -> Proposed[Plan]:
    """Returns a table whose run waited. It goes on only if it was due when it was shown, and nothing forbids it."""
    shown = joined(plan, run, now_ms)
    if run.commit_due_ms is not None and now_ms < run.commit_due_ms:
        return Proposed(shown, str(run.id), joins=True, waits=True)
    if shown.refusal is not None:
        return Proposed(shown, None, shown.refusal)
    return Proposed(shown, str(run.id), joins=True)
