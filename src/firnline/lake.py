"""The lake: everything that a program or a command can ask of its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from firnline.app.many import AT_ONCE
from firnline.app.moments import Cutoff
from firnline.app.naming import (
    RunNamed,
    Snapshot,
    Table,
    one_run_named,
    run_named,
    snapshot_meant,
    tables_meant,
    texts_meant,
)
from firnline.app.places import Places, places_of
from firnline.app.requests import RunOptions, TermOptions, request_of, search_of, takes, terms_of
from firnline.app.runs import Leave, Runs
from firnline.app.verbs.looking import LookingVerbs
from firnline.app.verbs.marking import MarkingVerbs
from firnline.app.verbs.plan_views import PlanView
from firnline.errors import FirnlineError, UsageError
from firnline.plans.plan import Plan
from firnline.policy.tiers import LIVE
from firnline.ports.catalogs import TableName
from firnline.ports.progress import Progress
from firnline.settings import read_config

if TYPE_CHECKING:  # what only some verbs work with is loaded by them: a small plan is mostly imports
    from firnline.app.erasure import Erasures
    from firnline.app.pointers.verbs import LakePointers
    from firnline.app.searches import Searches
    from firnline.app.several import Several
    from firnline.app.tiers import HandedSnapshots, Tiers
    from firnline.app.verbs.answers import OrphanAnswer, TableRuns
    from firnline.journal.outcomes import OutcomeAccount
    from firnline.ops.orphans.dropped import Dropped
    from firnline.ops.runs.status import RunStatus
    from firnline.ops.tiers.restoring import Restored
    from firnline.ops.tiers.waking import Awaited, Inquiry
    from firnline.plans.graph.facts import SnapshotGraph
    from firnline.spark.session import Session
    from firnline.sql.dataframes import DataFrames
    from firnline.sql.session import Answer, Statements


@dataclass(eq=False)
class Lake(LookingVerbs, MarkingVerbs):
    """Every table of the configured catalogs, and any table by its location. `file` is the configuration if named.
    `route`: a query for a version that only a tier has is answered there.
    """

    places: Places
    file: str | None = None
    route: bool = True

    def __repr__(self) -> str:
        """Returns what tells lakes apart: a notebook shows it, so it reads no table and shows no secret."""
        from firnline.settings import find_config

        try:
            catalogs = ", ".join(self.catalogs) or "none"
        except FirnlineError:
            catalogs = "not readable"
        file = find_config(self.file) or "no firnline.yaml"
        return f"<firnline.Lake: catalogs: {catalogs}; {file}; engine {self.places.engines.named}>"

    @cached_property
    def _runs(self) -> Runs:
        return Runs(self.places)

    @cached_property
    def _searches(self) -> Searches:
        from firnline.app.searches import Searches

        return Searches(self.places, self._runs)

    def several(self, tables: Table | Iterable[Table] | None = None, *, at_once: int = AT_ONCE) -> Several:
        """Returns the verbs on several tables, so many side by side: names, locations and patterns such as
        `lake.sales.*`; every table of every catalog if None. A tuple is several tables, and the parts of one within a
        list.
        """
        from firnline.app.several import Several

        named = None if tables is None else tables_meant(tables)
        return Several(self.places, self._runs, self._searches, named, at_once)

    def sql(self, text: str) -> Iterator[Answer]:
        """Yields the answer to each statement: a DataFrame to a query. `USE TABLE` holds for the calls that follow. A
        text that makes no sense, or names a table that is not there, is refused before Spark is even loaded.
        """
        if "_statements" not in self.__dict__:
            from firnline.sql.text.namespaces import tables_shown
            from firnline.sql.text.statements import loading, understood

            understood(text, loading(self.places), partial(tables_shown, self.places.catalogs))
        return self._statements.run(text)

    @cached_property
    def dataframes(self) -> DataFrames:
        """The judged files of a plan, runs and the ledger, as DataFrames: for joins with tables of your own."""
        from firnline.sql.dataframes import DataFrames

        return DataFrames(self.places, self.file)

    @cached_property
    def _statements(self) -> Statements:
        from firnline.sql.session import Statements

        return Statements(self.places, self.file, self.route)

    @cached_property
    def pointers(self) -> LakePointers:
        """Files beside tables that name their current metadata: `sync`, `watch`, and `open_path` without a catalog."""
        from firnline.app.pointers.verbs import LakePointers

        return LakePointers(self.places)

    @cached_property
    def erasures(self) -> Erasures:
        """Data files that go from every snapshot of a table and its tiers: `plan` and `carry_out`."""
        from firnline.app.erasure import Erasures

        return Erasures(self.places, self._runs)

    @cached_property
    def _tiers(self) -> Tiers:
        from firnline.app.tiers import Tiers

        return Tiers(self.places)

    @takes(RunOptions)
    def archive(self, table: Table, **options: Unpack[RunOptions]) -> HandedSnapshots:
        """Returns what was handed to the table's tier: what a run would expire now. The live table is not changed."""
        return self._tiers.archive(table, request_of(**options))

    def restore(
        self,
        table: Table,
        snapshot: Snapshot,
        to: str = LIVE,
        *,
        branch: str | None = None,
        tag: str | None = None,
        inquiry: Inquiry | None = None,
    ) -> Restored | Awaited:
        """Returns a snapshot of a tier, brought back; or, for an `inquiry` that does not wait, what is waited for."""
        return self._tiers.restore(table, snapshot_meant(snapshot), to, branch, tag, inquiry)

    # ---- runs

    @takes(RunOptions)
    def plan(
        self,
        table: Table,
        *,
        drop: Iterable[str] = (),
        save: bool = False,
        files: str | Path | None = None,
        **asked: Unpack[RunOptions],
    ) -> PlanView:
        """Returns what a run would do, or one that drops refs; `asked` are the options of `expire`. Changes nothing;
        `save` writes the plan into a new run record, `files` the list of files that would go.
        """
        return self._runs.plan(table, replace(request_of(**asked), drop=texts_meant("drop", drop)), save, files)

    @takes(RunOptions)
    def graph(self, table: Table, *, drop: Iterable[str] = (), **asked: Unpack[RunOptions]) -> SnapshotGraph:
        """Returns the table's snapshots before and after a run, with all that names and keeps them. Changes nothing."""
        return self._runs.graph(table, replace(request_of(**asked), drop=texts_meant("drop", drop)))

    @takes(RunOptions)
    def expire(
        self,
        table: Table,
        *,
        break_lease: bool = False,
        confirm: Callable[[Plan], None] = lambda plan: None,
        **asked: Unpack[RunOptions],
    ) -> RunStatus | PlanView:
        """Returns the run: planned, committed, and purged if its grace is over. A plan where nothing expires.

        `asked` are the options of `request_of`. `confirm` is shown the very plan that is then carried out; it raises to
        stop.
        """
        return self._runs.carry_out(table, request_of(**asked), confirm, break_lease)

    @takes(RunOptions)
    def drop(
        self,
        table: Table,
        refs: Iterable[str],
        *,
        break_lease: bool = False,
        confirm: Callable[[Plan], None] = lambda plan: None,
        **asked: Unpack[RunOptions],
    ) -> RunStatus | PlanView:
        """Returns the run that drops tags or branches with the files that nothing else needs; nothing else goes."""
        request = replace(request_of(**asked), drop=texts_meant("refs", refs))
        return self._runs.carry_out(table, request, confirm, break_lease)

    @takes(RunOptions)
    def untag(
        self,
        table: Table,
        name: str,
        *,
        break_lease: bool = False,
        confirm: Callable[[Plan], None] = lambda plan: None,
        **asked: Unpack[RunOptions],
    ) -> RunStatus | PlanView | None:
        """Removes a tag. Returns None, or the run that it took: a tag that alone holds a snapshot goes with its files,
        and the options are those of `drop`.
        """
        from firnline.ops.marks.tags import holds_alone, remove_tag

        work = self.places.table_context(table)
        if holds_alone(work, name):
            return self.drop(table, [name], break_lease=break_lease, confirm=confirm, **asked)
        remove_tag(work, name)
        return None

    @takes(RunOptions)
    def drop_branch(
        self,
        table: Table,
        name: str,
        *,
        dry_run: bool = False,
        break_lease: bool = False,
        confirm: Callable[[Plan], None] = lambda plan: None,
        **asked: Unpack[RunOptions],
    ) -> RunStatus | PlanView:
        """Returns the run that drops a branch, by the options of `drop`; its plan alone if `dry_run`. Raises UsageError
        for the name of a tag.
        """
        from firnline.ops.marks.tags import refuse_no_branch

        refuse_no_branch(self.places.table_context(table), name)
        if dry_run:
            return self.plan(table, drop=[name], **asked)
        return self.drop(table, [name], break_lease=break_lease, confirm=confirm, **asked)

    def advance(self, run: RunNamed, *, break_lease: bool = False, include_outside: bool | None = None) -> RunStatus:
        """Returns the run, taken as far as it may go now.

        `include_outside`: whether files outside the table's own folders may go; None where the configuration decides.
        What was said when the run was planned is not asked.
        """
        return self._runs.advance(one_run_named(run, "resume(table)"), Leave(break_lease, include_outside))

    def commit(self, run: RunNamed, *, break_lease: bool = False) -> RunStatus:
        return self._runs.commit(run_named(run), Leave(break_lease))

    def approve(self, run: RunNamed, *, by: str, note: str | None = None) -> RunStatus:
        """Returns the run, approved by a person: what `approve-above` demands of a large one before it goes on."""
        self._runs.approve(run_named(run), by, note)
        return self.run(run)

    def undo(
        self, run: RunNamed | TableName, *, break_lease: bool = False, include_outside: bool | None = None
    ) -> RunStatus:
        """Returns the run, undone: its snapshots, refs and log are back; of a table its last run. Raises once its purge
        has started.
        """
        return self._runs.undo(run_named(run), Leave(break_lease, include_outside))

    def purge(self, run: RunNamed, *, break_lease: bool = False, include_outside: bool | None = None) -> RunStatus:
        """Returns the run, purged where its grace is over; committed first, as by `advance`, if it only waited to be
        called off. Raises for any other that was never committed.
        """
        return self._runs.purge(one_run_named(run, "purge_table(table)"), Leave(break_lease, include_outside))

    def purge_table(self, table: Table, *, break_lease: bool = False, include_outside: bool | None = None) -> TableRuns:
        """Returns the committed runs of a table, each purged where it may be, and what waited to be called off."""
        from firnline.app.verbs.answers import TableRuns

        return TableRuns(self._runs.purge_table(table, Leave(break_lease, include_outside)))

    def resume(
        self, table: Table | None = None, *, break_lease: bool = False, include_outside: bool | None = None
    ) -> TableRuns:
        """Returns every unfinished run of a table, each taken as far as it may go now. Raises UsageError where none is
        named.
        """
        if table is None:
            raise UsageError("resume() names no table", hint="`lake.several().resume()` is of every table")
        from firnline.app.verbs.answers import TableRuns

        return TableRuns(self._runs.resume(table, Leave(break_lease, include_outside)))

    def runs(self, table: Table | None = None) -> TableRuns:
        """Returns every recorded run of a table, in the order of planning. Changes nothing. Raises UsageError where
        none is named: runs of every table come with what could not be read.
        """
        if table is None:
            raise UsageError("runs() names no table", hint="`lake.several().runs()` is of every table")
        from firnline.app.verbs.answers import TableRuns

        return TableRuns(self._runs.of_table(table))

    def run(self, run: RunNamed) -> RunStatus:
        return self._runs.named(run_named(run))

    def outcomes(self, run: RunNamed, *, shown: int = 1_000) -> OutcomeAccount:
        """Returns what became of the files of a run by outcome and reason, and so many of them one by one."""
        return self._runs.account(run_named(run), shown)

    # ---- searches

    @takes(TermOptions)
    def orphans(
        self,
        table: Table,
        *,
        older_than: Cutoff | None = None,
        same: Iterable[tuple[str, str]] = (),
        dead: Iterable[str] = (),
        also: Iterable[str] = (),
        keep_near_misses: bool = False,
        **terms: Unpack[TermOptions],
    ) -> OrphanAnswer:
        """Returns what no table needs of a table's folders or under a prefix, and the run that removes it, if any.

        `also` are tables that no catalog has; `terms` are those of `terms_of`.
        """
        from firnline.app.verbs.answers import OrphanAnswer

        asked = search_of(older_than, same, dead, also, keep_near_misses)
        return OrphanAnswer(*self._searches.orphans(table, asked, terms_of(**terms)))

    def dropped(self, prefix: str) -> list[Dropped]:
        """Returns the folders under a prefix that look like tables and that no configured catalog knows."""
        return self._searches.dropped(prefix)

    @takes(TermOptions)
    def purge_dropped(
        self, prefix: str, folder: str, *, older_than: Cutoff | None = None, **terms: Unpack[TermOptions]
    ) -> OrphanAnswer:
        """Returns what would go of one dropped table, and the run that removes it, if any."""
        from firnline.app.verbs.answers import OrphanAnswer

        return OrphanAnswer(*self._searches.purge_dropped(prefix, folder, search_of(older_than), terms_of(**terms)))


def open_lake(
    config: str | None = None,
    *,
    engine: str = "auto",
    session: Session | None = None,
    progress: Progress | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    trust: Iterable[str] = (),
) -> Lake:
    """Returns the lake that firnline.yaml and PyIceberg's configuration describe. `trust` names snapshots whose
    manifest lists are whole, whatever their summaries say.
    """
    trusted = frozenset(texts_meant("trust", trust))
    return Lake(places_of(read_config(config), engine, session, progress, interrupted, trust=trusted), config)
