"""The composition root: the only module that names concrete adapters. Everything heavy is imported when needed."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firnline.errors import BlastRadiusExceeded, NoSuchTable, UnreadableMetadata, UsageError
from firnline.journal.layout import FOLDER, RunId
from firnline.journal.lease import Lease, LeaseTimes
from firnline.journal.processes import this_process
from firnline.journal.runs import Run
from firnline.model.locations import identity, join, within
from firnline.model.times import parse_duration, parse_instant
from firnline.ops.carry import (
    Carried,
    carry,
    carry_all,
    commit_only,
    purge_all,
    purge_only,
    report,
    settle_others,
    undo,
)
from firnline.ops.check import Checked, check
from firnline.ops.files import check_listing_name, write_listing
from firnline.ops.guards import refuse_forbidden
from firnline.ops.history import check_plot_name, expired_snapshots, timeline_of, write_plot
from firnline.ops.orphans.dropped import Dropped, dropped_tables
from firnline.ops.orphans.neighbours import outermost
from firnline.ops.orphans.plan import Searched, plan_orphans, save_search
from firnline.ops.orphans.prefix import Prefix
from firnline.ops.orphans.scope import Scope
from firnline.ops.orphans.search import Asked, Means, Rules
from firnline.ops.plan import Planned, make_plan
from firnline.ops.purge import Shovel
from firnline.ops.readiness import refuse_unfit
from firnline.ops.save import save_plan
from firnline.ops.settle import policy_in_force
from firnline.ops.sources import LocatedTable, catalog_table
from firnline.ops.why import Answer, why
from firnline.ops.workplace import Workplace
from firnline.plans.explain import explain
from firnline.plans.orphans import OrphanPlan
from firnline.plans.plan import Plan
from firnline.plans.request import Request
from firnline.plans.timeline import Span, Timeline
from firnline.policy.config import Section
from firnline.policy.inherit import Effective
from firnline.ports.cache import REDIS
from firnline.ports.catalogs import Catalog, Commit, TableName
from firnline.ports.engines import ListingTooLarge
from firnline.ports.listings import ListRanges, Sort
from firnline.ports.progress import Progress, Silent
from firnline.ports.tables import TableSource
from firnline.settings import cache_folder, cache_setting, read_config, user_folder

if TYPE_CHECKING:
    from firnline.caches.opening import Memory
    from firnline.catalogs.config import CatalogSettings
    from firnline.formats.iceberg.table import IcebergFormat
    from firnline.ports.engines import Engine
    from firnline.ports.formats import State
    from firnline.ports.probe import Capabilities
    from firnline.ports.stores import ReadWrite
    from firnline.ports.throttle import Budget
    from firnline.spark.session import Session

ENGINES = ("auto", "local", "spark")
_OF_STORES = ("s3.", "client.", "gcs.", "adls.")
_LARGE_SNAPSHOTS = 20_000
_LARGE_FILES = 2_000_000
_LARGE_PURGE = 1_000_000
_LARGE_LISTING = 1_000_000
_NUMBER = re.compile(r"[0-9]{1,18}")

Moment = str | int


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


@dataclass(frozen=True, slots=True)
class Place:
    """Where one table is: its source, and the store that its own catalog's settings reach."""

    source: LocatedTable | Prefix
    store: ReadWrite
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass
class Lake:
    """Every table of the configured catalogs, and any table by its location."""

    config: Section
    engine: str = "auto"
    session: Session | None = None
    progress: Progress = field(default_factory=Silent)
    interrupted: Callable[[], bool] = lambda: False
    clock: Callable[[], int] = field(default_factory=lambda: now_ms)

    _stores: dict[frozenset[tuple[str, str]], ReadWrite] = field(default_factory=dict, init=False, repr=False)
    _probed: dict[tuple[str, str], Capabilities] = field(default_factory=dict, init=False, repr=False)

    def place(self, table: str) -> Place:
        """Returns where a table is, reached with its own catalog's settings. Raises NoSuchTable."""
        name = self._name(table)
        settings = self.settings_of(name)
        store = self.store_of(settings)
        if not name.catalog:
            return Place(_at_location(name, store), store, settings)
        catalog, commits = self.catalog(name.catalog), self.catalogs[name.catalog]
        source = catalog_table(catalog, name, iceberg_on(store), lambda: _commits(commits, store))
        return Place(source, store, settings)

    def settings_of(self, name: TableName) -> Mapping[str, str]:
        """Returns how the table's store is reached, by PyIceberg's names; what a catalog hands out for a table wins.

        A location without a catalog is reached as the catalog whose warehouse holds it, or as the only one; the rest
        is the environment's.
        """
        if name.catalog:
            said = {**self.catalogs[name.catalog].properties, **self.catalog(name.catalog).vended(name)}
            return store_settings(said)
        holding = [each for each in self.catalogs.values() if _holds(each.properties, name.name)]
        chosen = holding or list(self.catalogs.values())
        return store_settings(chosen[0].properties) if len(chosen) == 1 else {}

    def store_of(self, settings: Mapping[str, str]) -> ReadWrite:
        """Returns the store behind some settings, one for equal ones. It asks again where that can help."""
        from firnline.stores.objects import ObjectStores
        from firnline.stores.wrappers.retry import Retrying

        key = frozenset(settings.items())
        if key not in self._stores:
            self._stores[key] = Retrying(ObjectStores(settings))
        return self._stores[key]

    def check_store(self, location: str) -> Capabilities:
        """Returns what the store at a location really does. Writes a few objects of its own and removes them again."""
        from firnline.stores.probe import StoreProbe

        named = absolute(location)
        return StoreProbe(self.settings_of(TableName("", "", named))).probe(join(named, FOLDER), [named])

    def _prepare(self, work: Workplace, state: State, *, deletes: bool) -> None:
        """Returns where the table's store can carry a run, asked once: no permission is missed only after a commit."""
        from firnline.stores.probe import StoreProbe

        root = work.root(state)
        if (root, state.location) not in self._probed:
            inside = (join(state.location, "data"), join(state.location, "metadata"))
            probe = StoreProbe(self.settings_of(work.source.name))
            self._probed[root, state.location] = probe.probe(root, list(dict.fromkeys((*state.owned, *inside))))
        refuse_unfit(self._probed[root, state.location], deletes=deletes)

    def _noted(self, planned: Planned, source: TableSource) -> Planned:
        """Returns the plan with what somebody should know of the store before anything is deleted there."""
        notes = self._warnings(source.name, planned.state.location)
        return replace(planned, plan=replace(planned.plan, notes=notes))

    def _warnings(self, name: TableName, location: str) -> tuple[str, ...]:
        from firnline.stores.probe import StoreProbe

        return StoreProbe(self.settings_of(name)).surroundings(location).warnings()

    @cached_property
    def memory(self) -> Memory:
        """What earlier plans found in units. A cache that was asked for and cannot be used is said, and left alone."""
        from firnline.caches.opening import open_memory

        setting, asked = cache_setting(self.config)
        key = os.environ.get("FIRNLINE_CACHE_KEY")
        memory = open_memory(setting, key, user_folder() / "cache.key", cache_folder())
        if memory.trouble and asked:
            logging.getLogger("firnline").warning("the cache %s is not used: %s", memory.place, memory.trouble)
        return memory

    @cached_property
    def catalogs(self) -> Mapping[str, CatalogSettings]:
        """The configured catalogs, none of them opened: one that cannot be read must not hide the others."""
        from firnline.catalogs.config import load_catalogs

        return load_catalogs()

    def catalog(self, name: str) -> Catalog:
        from firnline.catalogs.config import open_catalog

        return open_catalog(self.catalogs[name])

    def tables(self, catalog: str | None = None) -> list[TableName]:
        """Returns every table of every configured catalog, or of one."""
        if catalog is not None and catalog not in self.catalogs:
            raise UsageError(f"no catalog {catalog!r}", hint=f"configured are: {', '.join(self.catalogs) or 'none'}")
        names = self.catalogs if catalog is None else [catalog]
        return [table for name in names for table in self.catalog(name).tables()]

    def plan(
        self,
        table: str,
        *,
        older_than: Moment | None = None,
        retain_last: int | None = None,
        now: Moment | None = None,
        keep: Mapping[str, str] | None = None,
        include_outside: bool | None = None,
        blast_radius: float | None = None,
        new_history: bool = False,
        save: bool = False,
        files: str | Path | None = None,
    ) -> PlanView:
        """Returns what a run would do. Changes nothing; `save` writes the plan into a new run record."""
        if files is not None:
            check_listing_name(Path(files))
        request = request_of(older_than, retain_last, now, keep, include_outside, blast_radius, new_history=new_history)
        work = self.workplace(table)
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
        table: str,
        *,
        older_than: Moment | None = None,
        retain_last: int | None = None,
        now: Moment | None = None,
        keep: Mapping[str, str] | None = None,
        include_outside: bool | None = None,
        blast_radius: float | None = None,
        clean: bool = False,
        new_history: bool = False,
        grace: str | None = None,
        break_lease: bool = False,
        confirm: Callable[[Plan], None] = lambda plan: None,
    ) -> Carried | PlanView:
        """Returns the run: planned, committed, and purged if its grace is over. A plan where nothing expires.

        `confirm` is shown the very plan that is then carried out; it raises to stop.
        """
        request = request_of(older_than, retain_last, now, keep, include_outside, blast_radius, clean, new_history)
        work = self.workplace(table)
        planned = self._planned(work, request)
        if not planned.plan.stages:
            return PlanView(planned, planned.plan)
        if planned.plan.refused:
            raise BlastRadiusExceeded(planned.plan.refused, hint="raise --blast-radius, if that is really meant")
        _ = work.source.commits  # raises where nothing can be committed, before anything is written
        confirm(planned.plan)
        self._prepare(work, planned.state, deletes=True)
        plan = self._saved(work, planned, grace, meant=True)
        return self.carry(str(plan.run), break_lease=break_lease)

    def _planned(self, work: Workplace, request: Request) -> Planned:
        remember = self.memory.of(work.store)
        planned = make_plan(work.source, self.config, request, self._choose, self.clock(), remember)
        return self._noted(planned, work.source) if planned.plan.stages else planned

    def _saved(self, work: Workplace, planned: Planned, grace: str | None, *, meant: bool) -> Plan:
        effective = policy_in_force(planned.state, work.source.name, self.config, planned.request)
        grace_ms = effective.grace.value if grace is None else parse_duration(grace)
        root = work.root(planned.state)
        return save_plan(planned, work.source.format, work.store, root, grace_ms, self.clock(), meant=meant)

    def carry(self, run: str, *, break_lease: bool = False) -> Carried:
        """Returns the run, taken as far as it may go now."""
        with self._on_run(run, break_lease) as (work, lease, found):
            return carry(work, lease, found, self._shovel(found))

    def commit(self, run: str, *, break_lease: bool = False) -> Carried:
        with self._on_run(run, break_lease) as (work, lease, found):
            return commit_only(work, lease, found)

    def undo(self, run: str, *, break_lease: bool = False) -> Carried:
        """Returns the run, undone: its snapshots, refs and log are back. Raises once its purge has started."""
        with self._on_run(run, break_lease, deletes=False) as (work, lease, found):
            return report(work, undo(work, lease, found))

    def purge(self, run: str, *, break_lease: bool = False) -> Carried:
        """Returns the run, purged where its grace is over. Raises where it was never committed."""
        with self._on_run(run, break_lease) as (work, lease, found):
            return purge_only(work, lease, found, self._shovel(found))

    def purge_table(self, table: str, *, break_lease: bool = False) -> list[Carried]:
        """Returns the committed runs of a table, each purged where it may be."""
        return self._on_table(table, break_lease, purge_all)

    def resume(self, table: str, *, break_lease: bool = False) -> list[Carried]:
        """Returns every unfinished run of a table, each taken as far as it may go now."""
        return self._on_table(table, break_lease, carry_all)

    def _on_table(
        self, table: str, break_lease: bool, act: Callable[[Workplace, Lease, Shovel], list[Carried]]
    ) -> list[Carried]:
        """Holds the lease only where there is something to do: looking at every table must not stop anybody."""
        work = self.workplace(table)
        state = work.source.load()
        unfinished = [run for run in work.runs(state) if not run.is_finished]
        if not unfinished:
            return []
        largest = max(unfinished, key=lambda run: int(run.plan["victims"]["files"]))
        self._prepare(work, state, deletes=True)
        with work.lease(state, break_lease) as lease:
            return act(work, lease, self._shovel(largest))

    def expired_snapshots(self, table: str) -> Iterator[Mapping[str, Any]]:
        """Yields the snapshots that the table remembers, as they stood in its metadata. Reads them when asked."""
        work = self.workplace(table)
        return expired_snapshots(work.source, work.source.load(), work.store)

    def history(
        self,
        table: str,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        plot: str | Path | None = None,
    ) -> tuple[Timeline, UnreadableMetadata | None]:
        """Returns the table's days, and what of its history could not be read. Changes nothing."""
        if plot is not None:
            check_plot_name(Path(plot))
        work = self.workplace(table)
        state = work.source.load()
        span = Span(_instant(since), _instant(until))
        timeline, trouble = timeline_of(work.source, state, work.store, work.root(state), span)
        if plot is not None:
            write_plot(timeline, Path(plot))
        return timeline, trouble

    def runs(self, table: str) -> list[Carried]:
        """Returns every recorded run of a table, in the order of planning. Changes nothing."""
        work = self.workplace(table)
        return [report(work, run) for run in work.runs(work.source.load())]

    def run(self, run: str) -> Carried:
        work = self._searchable(RunId.parse(run).table)
        return report(work, work.run(RunId.parse(run))[1])

    def check(self, table: str) -> Checked:
        """Returns whether every file that the table's snapshots need exists, with its size. Changes nothing."""
        place = self.place(table)
        return check(place.source, place.store, self._choose, self.progress)

    def orphans(
        self,
        table: str,
        *,
        older_than: Moment | None = None,
        grace: str | None = None,
        inventory: str | Path | None = None,
        files: str | Path | None = None,
        same: tuple[tuple[str, str], ...] = (),
        dead: frozenset[str] = frozenset(),
        also: tuple[str, ...] = (),
        keep_near_misses: bool = False,
        blast_radius: float | None = None,
        dry_run: bool = False,
        break_lease: bool = False,
        consent: Callable[[OrphanPlan], bool] = lambda plan: False,
    ) -> tuple[OrphanPlan, Carried | None]:
        """Returns what no table needs of a table's folders or under a prefix, and the run that removes it, if any.

        `consent` is shown the plan; without it the plan is saved and waits. `also` are tables that no catalog has.
        """
        work = self._searchable(table)
        state = work.source.load()
        is_folder = isinstance(work.source, Prefix)
        scope = Scope((state.location,)) if is_folder else Scope.of_table(state)
        alone = () if is_folder or work.source.name.catalog else (work.source.name.name,)
        asked = Asked(_instant(older_than), same, dead, (*also, *alone), keep_near_misses)
        terms = _Terms(grace, blast_radius, dry_run, break_lease, consent)
        return self._searched(work, state, scope, asked, terms, inventory, files)

    def dropped(self, prefix: str) -> list[Dropped]:
        """Returns the folders under a prefix that look like tables and that no configured catalog knows."""
        work = self._prefix(prefix)
        return dropped_tables(work.source.load().location, self._means(work, Asked(), None), work.store)

    def purge_dropped(
        self,
        prefix: str,
        folder: str,
        *,
        older_than: Moment | None = None,
        grace: str | None = None,
        break_lease: bool = False,
        consent: Callable[[OrphanPlan], bool] = lambda plan: False,
    ) -> tuple[OrphanPlan, Carried | None]:
        """Returns what would go of one dropped table, and the run that removes it, if any."""
        named = {identity(each.folder): each for each in self.dropped(prefix)}
        chosen = named.get(identity(folder).rstrip("/"))
        if chosen is None or chosen.uuid is None:
            known = ", ".join(each.folder for each in named.values()) or "none"
            raise UsageError(f"{folder} is no dropped table under {prefix}", hint=f"there are: {known}")
        work = self._prefix(chosen.folder)
        departed = work.source.format.load(chosen.folder, chosen.metadata)
        scope = Scope(outermost(departed.owned), departed=departed)
        terms = _Terms(grace, None, False, break_lease, consent)
        return self._searched(work, work.source.load(), scope, Asked(_instant(older_than)), terms, None, None)

    def _searched(
        self,
        work: Workplace,
        state: State,
        scope: Scope,
        asked: Asked,
        terms: _Terms,
        inventory: str | Path | None,
        files: str | Path | None,
    ) -> tuple[OrphanPlan, Carried | None]:
        refuse_forbidden(state, self.clock())
        if files is not None:
            check_listing_name(Path(files))
        means = self._means(work, asked, inventory)
        effective = policy_in_force(state, work.source.name, self.config, Request())
        grace_ms = effective.grace.value if terms.grace is None else parse_duration(terms.grace)
        cap = effective.blast_radius.value if terms.blast_radius is None else terms.blast_radius
        notes = self._warnings(work.source.name, state.location)
        searched = self._plan_orphans(state, scope, asked, means, grace_ms=grace_ms, cap=cap, notes=notes)
        if files is not None:
            write_listing(searched, Path(files), state.owned)
        if terms.dry_run or not searched.plan.victims.by_kind:
            return searched.plan, None
        if searched.plan.refused:
            raise BlastRadiusExceeded(searched.plan.refused, hint="raise --blast-radius, if that is really meant")
        meant = terms.consent(searched.plan)
        plan = save_search(searched, means, work.store, work.root(state), meant=meant)
        run = str(plan.run)
        return plan, self.carry(run, break_lease=terms.break_lease) if meant else self.run(run)

    def _plan_orphans(self, state: State, scope: Scope, asked: Asked, means: Means, **terms: Any) -> Searched:
        """Returns the plan; made on Spark where one machine met more objects than it should hold."""
        try:
            return plan_orphans(state, scope, asked, means, **terms)
        except ListingTooLarge:
            return plan_orphans(state, scope, asked, replace(means, engine=self._spark()), **terms)

    def _means(self, work: Workplace, asked: Asked, inventory: str | Path | None) -> Means:
        from firnline.formats.documents import DOCUMENT_NAMES
        from firnline.formats.sorting import Sorting

        def make_sort(rules: Rules) -> Sort:
            return Sorting(rules.cutoff_ms, rules.places, DOCUMENT_NAMES, rules.others, rules.own, rules.same)

        ranges = _ranges(inventory, self.settings_of(work.source.name))
        engine = self._choose(work.source.load(), "auto")
        return Means(engine, ranges, lambda: self._everyone(asked.also), make_sort, work.source.format, self.clock)

    def _everyone(self, also: Sequence[str]) -> Iterator[Workplace]:
        """Yields where each table of every catalog is worked on, and those that no catalog has but somebody named."""
        yield from (self.workplace(str(name)) for name in self.tables())
        yield from (self.workplace(location) for location in also)

    def _searchable(self, table: str) -> Workplace:
        """Returns where a table is worked on; or a folder, where there is no table at that location."""
        try:
            work = self.workplace(table)
            work.source.load()
        except NoSuchTable:
            if "/" not in table:
                raise
            return self._prefix(table)
        return work

    def _prefix(self, folder: str) -> Workplace:
        """Returns where a folder with several tables is worked on."""
        location = absolute(folder)
        settings = self.settings_of(TableName("", "", location))
        store = self.store_of(settings)
        return self._workplace(Place(Prefix(location, iceberg_on(store)), store, settings))

    def workplace(self, table: str) -> Workplace:
        """Returns everything that is needed to change a table, except the power to delete."""
        return self._workplace(self.place(table))

    def _workplace(self, place: Place) -> Workplace:
        from firnline.stores.discard import OwnDiscard

        return Workplace(
            source=place.source,
            store=place.store,
            config=self.config,
            choose=self._choose,
            now=self.clock,
            owner=this_process(),
            lease_times=lease_times(),
            progress=self.progress,
            interrupted=self.interrupted,
            discard=OwnDiscard(place.settings),
            everyone=self._everyone,
        )

    @contextmanager
    def _on_run(self, run: str, break_lease: bool, *, deletes: bool = True) -> Iterator[tuple[Workplace, Lease, Run]]:
        """Holds the lease and hands out the run as it is then: another process may have moved it just before."""
        named = RunId.parse(run)
        work = self._searchable(named.table)
        state, _ = work.run(named)
        self._prepare(work, state, deletes=deletes)
        with work.lease(state, break_lease) as lease:
            found = work.run(named)[1]
            settle_others(work, lease, found)
            yield work, lease, found

    def _budget(self) -> Budget | None:
        """Returns the budget of deletes that all processes share, where Redis is configured; None for one's own."""
        setting, _ = cache_setting(self.config)
        if not setting.startswith(REDIS):
            return None
        from firnline.caches.budget import RedisBudget
        from firnline.stores.throttle import LocalBudget

        alone = LocalBudget()
        return RedisBudget(setting, alone.rate, alone)

    def _shovel(self, run: Run) -> Shovel:
        """Returns the power to delete: on executors where Spark was asked for or the list is long, else here."""
        from firnline.local.delete import LocalDeleteMany
        from firnline.stores.delete import ObjectDelete

        probed = [found for (root, _), found in self._probed.items() if root == run.folder.root]
        honoured = bool(probed) and all(bool(found.if_match_delete) for found in probed)
        settings = self.settings_of(self._name(run.id.table))
        delete = ObjectDelete(settings, budget=self._budget(), conditional=honoured)
        many = run.plan["victims"]["files"] > _LARGE_PURGE
        if self.engine == "spark" or (self.engine == "auto" and many):
            from firnline.spark.delete import SparkDeleteMany
            from firnline.spark.session import session

            return Shovel(delete, SparkDeleteMany(self.session or session()))
        return Shovel(delete, LocalDeleteMany())

    def why(self, table: str, what: str, **options: Any) -> Answer:
        """Returns what keeps a snapshot, a ref or a file; or why nothing does."""
        return why(self.source(table), self.config, request_of(**options), what, self.clock(), self.progress)

    def policy(self, table: str, keep: Mapping[str, str] | None = None) -> tuple[State, Effective]:
        """Returns the policy in force on a table, every value with its source."""
        source = self.source(table)
        state = source.load()
        return state, policy_in_force(state, source.name, self.config, Request(keep=keep or {}))

    def source(self, table: str) -> TableSource:
        """Returns the table of this name or location. Raises NoSuchTable."""
        return self.place(table).source

    def _name(self, table: str) -> TableName:
        return TableName("", "", absolute(table)) if "/" in table else self._named(table)

    def _named(self, table: str) -> TableName:
        first, *rest = table.split(".")
        if first in self.catalogs and len(rest) > 1:
            return TableName(first, ".".join(rest[:-1]), rest[-1])
        if len(self.catalogs) == 1 and rest:
            (name,) = self.catalogs
            return TableName(name, ".".join([first, *rest[:-1]]), rest[-1])
        known = ", ".join(self.catalogs) or "none is configured"
        raise NoSuchTable(
            f"no such table: {table}", hint=f"name it CATALOG.NAMESPACE.NAME, or give its location; catalogs: {known}"
        )

    def _choose(self, state: State, named: str) -> Engine:
        """Returns Spark for large work or where it was asked for; a small table must not wait for a session."""
        asked = named if self.engine == "auto" else self.engine
        if asked == "spark" or (asked == "auto" and is_large(state)):
            return self._spark()
        from firnline.local.engine import LocalEngine

        return LocalEngine(progress=self.progress, most_listed=_LARGE_LISTING if asked == "auto" else None)

    def _spark(self) -> Engine:
        from firnline.spark.engine import SparkEngine
        from firnline.spark.session import session

        return SparkEngine(self.session or session(), self.progress)


@dataclass(frozen=True, slots=True)
class _Terms:
    """On what terms a search becomes a run."""

    grace: str | None
    blast_radius: float | None
    dry_run: bool
    break_lease: bool
    consent: Callable[[OrphanPlan], bool]


def iceberg_on(store: ReadWrite) -> IcebergFormat:
    """Returns the format on a store that it can only read."""
    from firnline.formats.iceberg.table import IcebergFormat
    from firnline.stores.wrappers.read_only import ReadOnly

    return IcebergFormat(ReadOnly(store))


def store_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns what of a catalog's properties is about stores: its own secrets stay with the catalog."""
    return {name: value for name, value in properties.items() if name.startswith(_OF_STORES)}


def _holds(properties: Mapping[str, str], location: str) -> bool:
    warehouse = properties.get("warehouse", "")
    return "/" in warehouse and within(warehouse, join(location, "x"))


def _commits(settings: CatalogSettings, store: ReadWrite) -> Commit:
    from firnline.catalogs.config import open_commits

    return open_commits(settings, store)


def _at_location(name: TableName, store: ReadWrite) -> LocatedTable:
    from firnline.catalogs.paths import PathCommits, PathTables

    return catalog_table(PathTables(store), name, iceberg_on(store), lambda: PathCommits(store))


def _ranges(inventory: str | Path | None, settings: Mapping[str, str]) -> ListRanges:
    """Returns how objects are listed: by the store itself, or from a written inventory of it."""
    if inventory is not None:
        from firnline.stores.inventory import Inventory

        return Inventory(str(inventory))
    from firnline.stores.ranges import ObjectRanges

    return ObjectRanges(settings)


def absolute(location: str) -> str:
    """Returns a location that means the same from every folder, without a slash at its end."""
    named = "://" in location or location.startswith("file:")
    return (location if named else os.path.abspath(location)).rstrip("/")


def is_large(state: State) -> bool:
    """Tells whether a walk is worth a Spark session, by what the metadata says without opening anything."""
    snapshots = state.document.get("snapshots") or ()
    summaries = (s.get("summary") for s in snapshots if isinstance(s, dict))
    totals = (str(each.get("total-data-files")) for each in summaries if isinstance(each, dict))
    files = max((int(text) for text in totals if _NUMBER.fullmatch(text)), default=0)
    return len(state.graph) > _LARGE_SNAPSHOTS or files > _LARGE_FILES


def open_lake(
    config: str | None = None,
    *,
    engine: str = "auto",
    session: Session | None = None,
    progress: Progress | None = None,
    interrupted: Callable[[], bool] = lambda: False,
) -> Lake:
    """Returns the lake that firnline.yaml and PyIceberg's configuration describe."""
    if engine not in ENGINES:
        raise UsageError(f"unknown engine {engine!r}", hint=f"one of: {', '.join(ENGINES)}")
    return Lake(read_config(config), engine, session, progress or Silent(), interrupted)


def request_of(
    older_than: Moment | None = None,
    retain_last: int | None = None,
    now: Moment | None = None,
    keep: Mapping[str, str] | None = None,
    include_outside: bool | None = None,
    blast_radius: float | None = None,
    clean: bool = False,
    new_history: bool = False,
) -> Request:
    return Request(
        keep or {},
        _instant(older_than),
        retain_last,
        _instant(now),
        include_outside,
        blast_radius,
        clean,
        new_history,
    )


def _instant(moment: Moment | None) -> int | None:
    return moment if moment is None or isinstance(moment, int) else parse_instant(moment)


def lease_times() -> LeaseTimes:
    """Returns how long a lease lasts: FIRNLINE_LEASE, with a quarter of it as the margin on both sides."""
    length = parse_duration(os.environ.get("FIRNLINE_LEASE", "2m"))
    return LeaseTimes(length, length // 4)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
