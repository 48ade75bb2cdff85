"""Where tables are, and with what they are worked on: a name or a location becomes a table, and a table its context."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from firnline.app.catalogs import Catalogs, absolute
from firnline.app.engines import Engines
from firnline.app.naming import Table, table_meant
from firnline.app.observing.auditing import Auditing
from firnline.app.observing.watching import watch_of
from firnline.app.other_tables import OtherTables
from firnline.app.stores import Pacing, Stores, read_only
from firnline.errors import LeaseHeld, NoSuchTable
from firnline.formats.registry import EveryFormat, commits_of, kit_at, kit_named, original_of
from firnline.journal.events import RECORDS_KEY, Sealing
from firnline.journal.layout import RunId
from firnline.journal.lease import LeaseTimes, this_process
from firnline.journal.runs import has_run
from firnline.model.names import is_location
from firnline.model.times import parse_duration
from firnline.ops.table.context import TableContext
from firnline.ops.table.sources import LocatedTable, catalog_table
from firnline.own_files import own_config
from firnline.policy.inherit import effective
from firnline.policy.parse import Section
from firnline.policy.values import NONE
from firnline.ports.cache import CACHE_KEY
from firnline.ports.catalogs import Commit, TableName, TableSource
from firnline.ports.observing.watch import RunWatch
from firnline.ports.progress import Progress, Silent
from firnline.settings import cache_folder, cache_setting, read_config, store_limits, trusted_snapshots

if TYPE_CHECKING:
    from firnline.caches.opening import OpenedCache
    from firnline.catalogs.config import CatalogSettings
    from firnline.model.files import File
    from firnline.ops.neighbours.cards import LinksOf
    from firnline.ops.neighbours.index import Index
    from firnline.ops.neighbours.outward import StampsOf
    from firnline.ops.orphans.scope import Prefix
    from firnline.ops.tiers.tier import Tier
    from firnline.ports.expanding import Expand
    from firnline.ports.formats import Formats, State
    from firnline.ports.stores import ReadWrite
    from firnline.spark.session import Session


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Where one table is: its source, and the store that its own catalog's settings reach."""

    source: LocatedTable | Prefix
    store: ReadWrite
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class Places:
    """Finds every table and says with what it is worked on: its store, its catalog, the engine, the clock."""

    config: Section = field(repr=False)  # the address of its cache may hold a password
    catalogs: Catalogs
    stores: Stores
    engines: Engines
    progress: Progress = field(default_factory=Silent)
    interrupted: Callable[[], bool] = lambda: False
    clock: Callable[[], int] = now_ms
    trust: frozenset[str] = frozenset()
    watch: RunWatch = field(default_factory=RunWatch)
    has_begun: bool = field(default=False, init=False)
    _worked_on: set[str] = field(default_factory=set, init=False, repr=False)
    _entering: Any = field(default_factory=Lock, init=False, repr=False)

    @contextmanager
    def alone(self, root: str, *, begins: bool = True) -> Iterator[None]:
        """Lets one thread at a time work on the table whose records are at `root`; `begins` something that may be left
        undone. Raises LeaseHeld for another: the operator who breaks leases speaks of other processes, and this one
        certainly lives.
        """
        with self._entering:
            if root in self._worked_on:
                raise LeaseHeld("this very command works on the same table under another name", hint="name it once")
            self._worked_on.add(root)
        self.has_begun |= begins  # from here on there may be something that only `resume` finishes
        try:
            yield
        finally:
            self._worked_on.discard(root)

    @cached_property
    def auditing(self) -> Auditing:
        return Auditing(self.config, self.stores, _sealing)

    @cached_property
    def other_tables(self) -> OtherTables:
        return OtherTables(self.catalogs, self.stores, self.table_context)

    def tables(self, catalog: str | None = None) -> list[TableName]:
        """Returns every table of every configured catalog, or of one; or tables of a warehouse that no catalog has."""
        if catalog is not None and is_location(catalog):
            return self.other_tables.in_warehouse(absolute(catalog))
        return self.catalogs.tables(catalog)

    def place(self, table: Table) -> TablePlace:
        """Returns the table's source, the store that its own catalog's settings reach, and these settings. Raises
        NoSuchTable.
        """
        name = self.catalogs.name_of(table_meant(table))
        settings = self.stores.settings_of(name)
        store = self.stores.open(settings)
        if not name.catalog:
            return TablePlace(self._at_location(name, store, settings), store, settings)
        catalog, commits = self.catalogs.open(name.catalog), self.catalogs.settings(name.catalog)
        kit, reading = kit_named(catalog.format), read_only(store)
        table_format, original = kit.format(reading, self.trusted), partial(original_of, kit, reading)
        publishing = partial(self._publishing, name)
        source = catalog_table(catalog, name, table_format, lambda: publishing(_commits(commits, store)), original)
        return TablePlace(source, store, settings)

    def _publishing(self, name: TableName, commits: Commit) -> Commit:
        """Returns the commits of a table; where a policy asks for pointers, these follow each of them."""
        from firnline.app.pointers.verbs import LakePointers
        from firnline.ops.pointers.inline import PublishingCommit

        pointers = LakePointers(self)
        return PublishingCommit(commits, pointers.publish) if pointers.policy(name).is_on else commits

    def _at_location(self, name: TableName, store: ReadWrite, settings: Mapping[str, str]) -> LocatedTable:
        """Returns the table in a folder: what lies there tells its format. Where all paths follow from the folder's,
        the folder has one name, by whatever links it was reached.
        """
        from firnline.stores.real_paths import without_links

        reading = read_only(store)
        kit = kit_at(reading, name.name)
        table_format, folders = kit.format(reading, self.trusted), kit.folder_tables(reading)
        real = TableName.at(without_links(name.name)) if table_format.paths_follow_folder else name
        retire = partial(self.stores.retire, real, store)
        commits = partial(commits_of, kit, store, retire, settings, real.name)
        located = catalog_table(folders, real, table_format, commits, partial(original_of, kit, reading))
        return replace(located, passed=lambda current: folders.passed(real, current))

    def source(self, table: Table) -> TableSource:
        """Returns the table of this name or location. Raises NoSuchTable."""
        return self.place(table).source

    def table_context(self, table: Table) -> TableContext:
        """Returns everything that is needed to change a table, except the power to delete."""
        return self.context_at(self.place(table))

    def _open_tier(self, table: TableName, tier: str, uuid: str) -> Tier:
        from firnline.app.tiers import open_tier

        return open_tier(self, table, tier, uuid)

    def context_at(self, place: TablePlace) -> TableContext:
        from firnline.stores.real_paths import RealPaths
        from firnline.stores.settings import server_of

        return TableContext(
            source=place.source,
            store=place.store,
            config=self.config,
            choose=self.engines.choose,
            now=self.clock,
            owner=this_process(),
            index=self.index,
            lease_store=self.stores.prompt(place.settings),
            lease_times=lease_times(),
            progress=self.progress,
            interrupted=self.interrupted,
            discard=self.stores.discard(place.settings),
            everyone=self.other_tables.everyone,
            registered=self.other_tables.registered,
            may_list=self.catalogs.may_list,
            mirrors=self.other_tables.mirrors,
            table_around=partial(self.other_tables.table_around, read_only(place.store)),
            address=self.catalogs.address_of(place.source.name),
            server=server_of(place.settings),
            real=RealPaths(),
            sealing=_sealing,
            ranges=self.stores.ranges(place.settings),
            open_tier=self._open_tier,
            checkpoints=self.stores.checkpoints(place.source.name),
            watch=self.watch,
        )

    def searchable(self, table: Table) -> TableContext:
        """Returns the context of a table; that of the folder, if no table is at that location. Raises NoSuchTable if no
        table has the name.
        """
        named = table_meant(table)
        is_place = is_location(named) if isinstance(named, str) else not named.catalog
        try:
            work = self.table_context(named)
            work.source.load()
        except NoSuchTable:
            if not is_place:
                raise
            return self.prefix(str(named))
        return work

    def prefix(self, folder: str) -> TableContext:
        """Returns the context of a folder with several tables."""
        from firnline.ops.orphans.scope import Prefix

        location = absolute(folder)
        settings = self.stores.settings_of(TableName.at(location))
        store = self.stores.open(settings)
        return self.context_at(TablePlace(Prefix(location, self.formats(store)), store, settings))

    def of_run(self, run: RunId) -> TableContext:
        """Returns the context of a run: that of the folder that was searched if the run is recorded there, else its
        table's.

        A dropped table's folder still looks like a table, so the record decides.
        """
        if not is_location(run.table):
            return self.table_context(run.table)
        folder = self.prefix(run.table)
        state = folder.source.load()
        return folder if has_run(folder.store, folder.root(state), run, state.uuid) else self.table_context(run.table)

    def formats(self, store: ReadWrite) -> Formats:
        return EveryFormat(read_only(store), self.trusted)

    @cached_property
    def memory(self) -> OpenedCache:
        """What earlier plans found in units. A cache that was asked for and cannot be used is said, and left alone."""
        from firnline.caches.opening import open_memory

        setting, asked = cache_setting(self.config)
        key = os.environ.get(CACHE_KEY)
        memory = open_memory(setting, key, own_config() / "cache.key", cache_folder())
        if memory.trouble and asked:
            logging.getLogger("firnline").warning("the cache %s is not used: %s", memory.place, memory.trouble)
        return memory

    @cached_property
    def index(self) -> Index:
        """What is known of the references of all tables; one for the whole process."""
        from firnline.caches.opening import stamps_of
        from firnline.ops.neighbours.index import Index
        from firnline.stores.links_below import LinksBelow
        from firnline.stores.real_paths import RealPaths

        links_below = LinksBelow()

        def links() -> LinksOf:
            known_by = links_below.now()
            return lambda own: known_by(own.folders, own.holes)

        def excused(name: TableName) -> bool:
            return effective(self.config, name.catalog, name.namespace, name.name).sharing.value == NONE

        def opening(work: TableContext, state: State, units: Iterable[File], window_ms: int) -> tuple[Expand, StampsOf]:
            table_format = work.source.format
            stamps = stamps_of(work.store, table_format, state, units)
            return self.memory.remembering(table_format, stamps, window_ms), stamps.of

        return Index(self.memory.sealed(), opening, RealPaths, links, excused, self.trusted, self.progress)

    @property
    def trusted(self) -> frozenset[str]:
        """The snapshots whose manifest lists the operator vouches for: by an option, or in firnline.yaml."""
        return self.trust | trusted_snapshots(self.config)

    def vouched(self, state: State) -> Iterator[str]:
        """Yields a note for each snapshot of the table that the operator vouches for."""
        for each in sorted(self.trusted & state.graph.by_id.keys()):
            yield f"the manifest list of snapshot {each} counts as whole: --trust-snapshot, or `trust-snapshots`"


def places_of(
    config: Section,
    engine: str = "auto",
    session: Session | None = None,
    progress: Progress | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    clock: Callable[[], int] = now_ms,
    trust: frozenset[str] = frozenset(),
    pacing: Pacing | None = None,
) -> Places:
    """Returns the places that a configuration and PyIceberg's describe. Raises UsageError for an unknown engine."""
    shown, catalogs = progress or Silent(), Catalogs(frozenset(config.tiers))
    stores = Stores(config, catalogs, pacing or Pacing())
    engines = Engines(engine, session, shown, store_limits(config), stores.pacing.part)
    watch = watch_of(config, Auditing(config, stores, _sealing))
    return Places(config, catalogs, stores, engines, shown, interrupted, clock, trust, watch)


def open_places(config: str | None = None) -> Places:
    """Returns the places that firnline.yaml and PyIceberg's configuration describe."""
    return places_of(read_config(config))


def _sealing(make: bool) -> Sealing:
    """Returns with what the records of runs are sealed: a key of the operator, or else this user's own secret. Who only
    looks makes none: nothing was sealed with it then.
    """
    from firnline.caches.seal import own_secret, shared_secret

    key = os.environ.get(RECORDS_KEY)
    if key is not None:
        return Sealing(shared_secret(key, RECORDS_KEY), required=True)
    return Sealing(own_secret(own_config() / "records.key", make=make))


def _commits(settings: CatalogSettings, store: ReadWrite) -> Commit:
    from firnline.catalogs.config import open_commits

    return open_commits(settings, store)


def lease_times() -> LeaseTimes:
    """Returns how long a lease lasts: FIRNLINE_LEASE, with a quarter of it as the margin on both sides."""
    length = parse_duration(os.environ.get("FIRNLINE_LEASE", "2m"))
    return LeaseTimes(length, length // 4)
