"""The lake: everything that a program or a command can ask of its tables."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firnline.app.catalogs import Table
from firnline.app.doctor import examine
from firnline.app.erasure import Erasures
from firnline.app.looking import check_table, timeline_of_table
from firnline.app.many import AT_ONCE
from firnline.app.places import Places, places_of
from firnline.app.pointers.verbs import LakePointers
from firnline.app.requests import Moment, age_ms, cutoff, instant, request_of, search_of, terms_of
from firnline.app.runs import Leave, PlanView, Runs
from firnline.app.searches import Searches
from firnline.app.several import Several
from firnline.app.tiers import HandedSnapshots, Tiers
from firnline.errors import UnreadableMetadata
from firnline.model.holds import Hold
from firnline.model.snapshots import RefKind
from firnline.ops.history.reading import check_plot_name, expired_snapshots, write_plot
from firnline.ops.history.timeline import Span, Timeline
from firnline.ops.looking.check import Checked
from firnline.ops.looking.findings import Diagnosis
from firnline.ops.looking.permissions import Permissions, permissions
from firnline.ops.looking.why import Explanation, why
from firnline.ops.marks.adopt import Adoption, adopt, adoption_of, unaware
from firnline.ops.marks.holds import add_hold, release_hold
from firnline.ops.marks.tags import Tagged, add_tag, holds_alone, refuse_no_branch, remove_tag, resolve
from firnline.ops.orphans.dropped import Dropped
from firnline.ops.orphans.rules import SearchRequest
from firnline.ops.runs.decision import policy_in_force
from firnline.ops.runs.status import RunStatus
from firnline.ops.tiers.restoring import Restored
from firnline.ops.tiers.waking import Awaited, Inquiry
from firnline.ops.tiers.whereabouts import TableTiers
from firnline.plans.orphans import OrphanPlan
from firnline.plans.plan import Plan
from firnline.plans.request import Request
from firnline.policy.inherit import Effective
from firnline.policy.tiers import LIVE
from firnline.ports.catalogs import TableName
from firnline.ports.probe import StoreVerdicts
from firnline.ports.progress import Progress
from firnline.settings import read_config

if TYPE_CHECKING:
    from firnline.ports.formats import State
    from firnline.spark.session import Session
    from firnline.sql.dataframes import DataFrames
    from firnline.sql.session import Answer, Statements


@dataclass(eq=False)
class Lake:
    """Every table of the configured catalogs, and any table by its location. `file` is the configuration if named.
    `route`: a query for a version that only a tier has is answered there.
    """

    places: Places
    file: str | None = None
    route: bool = True

    @cached_property
    def _runs(self) -> Runs:
        return Runs(self.places)

    @cached_property
    def _searches(self) -> Searches:
        return Searches(self.places, self._runs)

    def several(self, tables: Iterable[str] | None = None, *, at_once: int = AT_ONCE) -> Several:
        """Returns the verbs on several tables, so many side by side: names, locations and patterns such as
        `lake.sales.*`; every table of every catalog if None.
        """
        return Several(self.places, self._runs, self._searches, None if tables is None else tuple(tables), at_once)

    # ---- looking: nothing is changed

    @property
    def catalogs(self) -> Sequence[str]:
        """The names of the configured catalogs."""
        return list(self.places.catalogs.configured)

    def tables(self, catalog: str | None = None) -> list[TableName]:
        """Returns every table of every configured catalog, or of one; or tables of a warehouse that no catalog has."""
        return self.places.tables(catalog)

    def why(self, table: Table, what: str, **options: Any) -> Explanation:
        """Returns what keeps a snapshot, a ref or a file; or why nothing does."""
        return why(self.places.table_context(table), request_of(**options), what)

    def policy(self, table: Table, keep: Mapping[str, str] | None = None) -> tuple[State, Effective]:
        """Returns the policy in force on a table, every value with its source."""
        source = self.places.source(table)
        state = source.load()
        return state, policy_in_force(state, source.name, self.places.config, Request(keep=keep or {}))

    def check(self, table: Table) -> Checked:
        """Returns whether every file that the table's snapshots need exists, with its size. Changes nothing."""
        return check_table(self.places, table)

    def check_store(self, location: str) -> StoreVerdicts:
        """Returns what the store at a location really does. Writes a few objects of its own and removes them again."""
        return self.places.stores.check(location)

    def doctor(self, what: str | None = None) -> Diagnosis:
        """Returns what is configured, reachable and permitted. `what` names one catalog, or a table to try."""
        return examine(self.places, self.file, what)

    def permissions(self, command: str, store: str = "s3", table: Table | None = None) -> Permissions:
        """Returns the least that a command needs to be allowed on a store, or on one very table."""
        return permissions(command, store, None if table is None else self.places.table_context(table))

    def expired_snapshots(self, table: Table) -> Iterator[Mapping[str, Any]]:
        """Yields the snapshots that the table remembers, as they stood in its metadata. Reads them when asked."""
        work = self.places.table_context(table)
        return expired_snapshots(work.source, work.source.load(), work.store)

    def history(
        self, table: Table, *, since: Moment | None = None, until: Moment | None = None, plot: str | Path | None = None
    ) -> tuple[Timeline, UnreadableMetadata | None]:
        """Returns the table's days, and what of its history could not be read. Changes nothing."""
        if plot is not None:
            check_plot_name(Path(plot))
        timeline, trouble = timeline_of_table(self.places, table, Span(instant(since), instant(until)))
        if plot is not None:
            write_plot(timeline, Path(plot))
        return timeline, trouble

    def sql(self, text: str) -> Iterator[Answer]:
        """Yields the answer to each statement: a DataFrame to a query. `USE TABLE` holds for the calls that follow."""
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
        return LakePointers(self.places)

    @cached_property
    def erasures(self) -> Erasures:
        """Data files that go from every snapshot of a table and its tiers: `plan` and `carry_out`."""
        return Erasures(self.places, self._runs)

    def tiers(self, table: Table) -> TableTiers:
        """Returns where each known snapshot of a table lives, and what each tier holds of it. Changes nothing."""
        return Tiers(self.places).of_table(table)

    def archive(self, table: Table, **options: Any) -> HandedSnapshots:
        """Returns what was handed to the table's tier: what a run would expire now. The live table is not changed."""
        return Tiers(self.places).archive(table, request_of(**options))

    def restore(
        self,
        table: Table,
        snapshot: str,
        to: str = LIVE,
        *,
        branch: str | None = None,
        tag: str | None = None,
        inquiry: Inquiry | None = None,
    ) -> Restored | Awaited:
        """Returns a snapshot of a tier, brought back; or, for an `inquiry` that does not wait, what is waited for."""
        return Tiers(self.places).restore(table, snapshot, to, branch, tag, inquiry)

    # ---- marks on a table

    def tags(self, table: Table) -> list[Tagged]:
        """Returns the tags of a table, each with the time until which it is kept."""
        state = self.places.source(table).load()
        return [Tagged.of(state, ref) for ref in state.refs.values() if ref.kind is RefKind.TAG]

    def tag(self, table: Table, name: str, snapshot: str | None = None, *, retain: str | int | None = None) -> Tagged:
        """Returns the tag as it was written. `snapshot` is an id or a ref, the current one if None; `retain` an age
        such as 30d, or "forever"; without it the table's own default counts.
        """
        return add_tag(self.places.table_context(table), name, snapshot, age_ms(retain))

    def untag(self, table: Table, name: str, **options: Any) -> RunStatus | PlanView | None:
        """Removes a tag. Returns None, or the run that it took: a tag that alone holds a snapshot goes with its files,
        and `options` are those of `drop`.
        """
        work = self.places.table_context(table)
        if holds_alone(work, name):
            return self.drop(table, [name], **options)
        remove_tag(work, name)
        return None

    def holds(self, table: Table) -> tuple[Hold, ...]:
        return self.places.source(table).load().holds

    def hold(
        self,
        table: Table,
        name: str,
        snapshot: str | None = None,
        *,
        why: str = "",
        who: str | None = None,
        until: Moment | None = None,
    ) -> tuple[Hold, str]:
        """Returns the hold on a snapshot, or on the whole table, and what it protects in words."""
        work = self.places.table_context(table)
        state = work.source.load()
        held = resolve(state, snapshot) if snapshot is not None and snapshot in state.refs else snapshot
        hold = Hold(name, who or getpass.getuser(), why, held, instant(until))
        return hold, add_hold(work, hold)

    def release(self, table: Table, name: str) -> None:
        """Removes a hold; what it kept then falls under the policy."""
        release_hold(self.places.table_context(table), name)

    def adoption(self, table: Table) -> tuple[Adoption, ...]:
        """Returns what `adopt` would write into the table's own retention. Changes nothing."""
        work = self.places.table_context(table)
        return adoption_of(work, work.source.load())[1]

    def adopt(
        self, table: Table, *, confirm: Callable[[tuple[Adoption, ...]], None] = lambda wanted: None
    ) -> tuple[tuple[Adoption, ...], Sequence[str]]:
        """Writes the policy's reach into the table's own retention, so that no other engine's expiry undercuts it.
        Returns what was written, and the branches on which jobs still write that started before.

        `confirm` is shown what would be written, if there is anything; it raises to stop.
        """
        work = self.places.table_context(table)
        _, wanted = adoption_of(work, work.source.load())
        if not wanted:
            return (), unaware(work)
        confirm(wanted)
        return adopt(work), unaware(work)

    # ---- runs

    def plan(
        self,
        table: Table,
        *,
        drop: Iterable[str] = (),
        save: bool = False,
        files: str | Path | None = None,
        **asked: Any,
    ) -> PlanView:
        """Returns what a run would do, or one that drops refs; `asked` are the options of `expire`. Changes nothing;
        `save` writes the plan into a new run record, `files` the list of files that would go.
        """
        return self._runs.plan(table, replace(request_of(**asked), drop=tuple(drop)), save, files)

    def expire(
        self,
        table: Table,
        *,
        break_lease: bool = False,
        confirm: Callable[[Plan], None] = lambda plan: None,
        **asked: Any,
    ) -> RunStatus | PlanView:
        """Returns the run: planned, committed, and purged if its grace is over. A plan where nothing expires.

        `asked` are the options of `request_of`. `confirm` is shown the very plan that is then carried out; it raises to
        stop.
        """
        return self._runs.carry_out(table, request_of(**asked), confirm, break_lease)

    def drop(
        self,
        table: Table,
        refs: Iterable[str],
        *,
        break_lease: bool = False,
        confirm: Callable[[Plan], None] = lambda plan: None,
        **asked: Any,
    ) -> RunStatus | PlanView:
        """Returns the run that drops tags or branches with the files that nothing else needs; nothing else goes."""
        request = replace(request_of(**asked), drop=tuple(refs))
        return self._runs.carry_out(table, request, confirm, break_lease)

    def drop_branch(self, table: Table, name: str, *, dry_run: bool = False, **options: Any) -> RunStatus | PlanView:
        """Returns the run that drops a branch, by the options of `drop`; its plan alone if `dry_run`. Raises UsageError
        for the name of a tag.
        """
        refuse_no_branch(self.places.table_context(table), name)
        if not dry_run:
            return self.drop(table, [name], **options)
        return self.plan(table, drop=[name], **{each: said for each, said in options.items() if each not in _ACTING})

    def advance(self, run: str, *, break_lease: bool = False, include_outside: bool | None = None) -> RunStatus:
        """Returns the run, taken as far as it may go now.

        `include_outside`: whether files outside the table's own folders may go; None where the configuration decides.
        What was said when the run was planned is not asked.
        """
        return self._runs.advance(run, Leave(break_lease, include_outside))

    def commit(self, run: str, *, break_lease: bool = False) -> RunStatus:
        return self._runs.commit(run, Leave(break_lease))

    def approve(self, run: str, *, by: str, note: str | None = None) -> RunStatus:
        """Returns the run, approved by a person: what `approve-above` demands of a large one before it goes on."""
        self._runs.approve(run, by, note)
        return self.run(run)

    def undo(self, run: str, *, break_lease: bool = False, include_outside: bool | None = None) -> RunStatus:
        """Returns the run, undone: its snapshots, refs and log are back. Raises once its purge has started."""
        return self._runs.undo(run, Leave(break_lease, include_outside))

    def purge(self, run: str, *, break_lease: bool = False, include_outside: bool | None = None) -> RunStatus:
        """Returns the run, purged where its grace is over. Raises where it was never committed."""
        return self._runs.purge(run, Leave(break_lease, include_outside))

    def purge_table(
        self, table: Table, *, break_lease: bool = False, include_outside: bool | None = None
    ) -> list[RunStatus]:
        """Returns the committed runs of a table, each purged where it may be."""
        return self._runs.purge_table(table, Leave(break_lease, include_outside))

    def resume(
        self, table: Table, *, break_lease: bool = False, include_outside: bool | None = None
    ) -> list[RunStatus]:
        """Returns every unfinished run of a table, each taken as far as it may go now."""
        return self._runs.resume(table, Leave(break_lease, include_outside))

    def runs(self, table: Table) -> list[RunStatus]:
        """Returns every recorded run of a table, in the order of planning. Changes nothing."""
        return self._runs.of_table(table)

    def run(self, run: str) -> RunStatus:
        return self._runs.named(run)

    # ---- searches

    def orphans(
        self,
        table: Table,
        *,
        older_than: Moment | None = None,
        same: tuple[tuple[str, str], ...] = (),
        dead: frozenset[str] = frozenset(),
        also: tuple[str, ...] = (),
        keep_near_misses: bool = False,
        **terms: Any,
    ) -> tuple[OrphanPlan, RunStatus | None]:
        """Returns what no table needs of a table's folders or under a prefix, and the run that removes it, if any.

        `also` are tables that no catalog has; `terms` are those of `terms_of`.
        """
        asked = search_of(older_than, same, dead, also, keep_near_misses)
        return self._searches.orphans(table, asked, terms_of(**terms))

    def dropped(self, prefix: str) -> list[Dropped]:
        """Returns the folders under a prefix that look like tables and that no configured catalog knows."""
        return self._searches.dropped(prefix)

    def purge_dropped(
        self, prefix: str, folder: str, *, older_than: Moment | None = None, **terms: Any
    ) -> tuple[OrphanPlan, RunStatus | None]:
        """Returns what would go of one dropped table, and the run that removes it, if any."""
        return self._searches.purge_dropped(prefix, folder, SearchRequest(cutoff(older_than)), terms_of(**terms))


_ACTING = ("break_lease", "confirm")


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
    trusted = frozenset(map(str, trust))
    return Lake(places_of(read_config(config), engine, session, progress, interrupted, trust=trusted), config)
