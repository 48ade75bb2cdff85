"""Where tables are, and with what they are reached: every concrete adapter is named here, and imported when needed."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from firnline.app.sharing import sharing
from firnline.errors import NoSuchTable, UsageError
from firnline.formats.registry import EveryFormat, commits_of, kit_at, kit_named, kits, original_of
from firnline.journal.events import RECORDS_KEY, Sealing
from firnline.journal.layout import FOLDER, RunId
from firnline.journal.lease import LeaseTimes, this_process
from firnline.journal.runs import Run, has_run
from firnline.model.locations import join, within
from firnline.model.names import is_location, parts_of
from firnline.model.times import parse_duration
from firnline.ops.orphans.scope import Prefix
from firnline.ops.runs.purge import Deleter
from firnline.ops.table.context import Registered, TableContext, refuse_unfit
from firnline.ops.table.sources import LocatedTable, catalog_table
from firnline.policy.inherit import effective
from firnline.policy.parse import Section
from firnline.policy.values import NONE
from firnline.ports.cache import CACHE_KEY, REDIS
from firnline.ports.catalogs import Catalog, Commit, TableName, TableSource
from firnline.ports.kits import Kit, Mirroring, Warehouses
from firnline.ports.progress import Progress, Silent
from firnline.settings import cache_folder, cache_setting, trusted_snapshots, user_folder

if TYPE_CHECKING:
    from firnline.caches.opening import OpenedCache
    from firnline.catalogs.config import CatalogSettings
    from firnline.ops.neighbours.index import Index
    from firnline.ports.engines import Engine
    from firnline.ports.formats import Formats, State, TableFormat
    from firnline.ports.probe import StoreVerdicts
    from firnline.ports.retire import Retire
    from firnline.ports.stores import Budget, Read, ReadWrite
    from firnline.spark.session import Session

ENGINES = ("auto", "local", "spark")
_OF_STORES = ("s3.", "client.", "gcs.", "adls.")
_LARGE_SNAPSHOTS = 20_000
_LARGE_FILES = 2_000_000
_LARGE_PURGE = 1_000_000
_LARGE_LISTING = 1_000_000
Table = str | TableName
"""A table as a caller names it: by a text, or by the value that a listing gave."""


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Where one table is: its source, and the store that its own catalog's settings reach."""

    source: LocatedTable | Prefix
    store: ReadWrite
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass
class Places:
    """Finds every table, opens its store and its catalog, and chooses the engine: every adapter is named here."""

    config: Section = field(repr=False)  # the address of its cache may hold a password
    engine: str = "auto"
    session: Session | None = None
    progress: Progress = field(default_factory=Silent)
    interrupted: Callable[[], bool] = lambda: False
    clock: Callable[[], int] = field(default_factory=lambda: now_ms)
    trust: frozenset[str] = frozenset()

    _stores: dict[frozenset[tuple[str, str]], ReadWrite] = field(default_factory=dict, init=False, repr=False)
    _unconfigured: dict[str, CatalogSettings] = field(default_factory=dict, init=False, repr=False)
    _probed: dict[tuple[str, str, str], StoreVerdicts] = field(default_factory=dict, init=False, repr=False)

    def place(self, table: Table) -> TablePlace:
        """Returns where a table is, reached with its own catalog's settings. Raises NoSuchTable."""
        name = self.name_of(table)
        settings = self.settings_of(name)
        store = self.store_of(settings)
        if not name.catalog:
            return TablePlace(self._at_location(name, store), store, settings)
        catalog, commits = self.catalog(name.catalog), self._configured(name.catalog)
        kit, reading = kit_named(catalog.format), _reading(store)
        table_format, original = kit.format(reading, self.trusted), partial(original_of, kit, reading)
        source = catalog_table(catalog, name, table_format, lambda: _commits(commits, store), original)
        return TablePlace(source, store, settings)

    def _at_location(self, name: TableName, store: ReadWrite) -> LocatedTable:
        """Returns the table in a folder: what lies there tells its format. Where all paths follow from the folder's,
        the folder has one name, by whatever links it was reached.
        """
        from firnline.stores.real_paths import without_links

        reading = _reading(store)
        kit = kit_at(reading, name.name)
        table_format, folders = kit.format(reading, self.trusted), kit.folder_tables(reading)
        real = TableName.at(without_links(name.name)) if table_format.paths_follow_folder else name
        commits = partial(commits_of, kit, store, partial(self._retire, real, store), real.name)
        located = catalog_table(folders, real, table_format, commits, partial(original_of, kit, reading))
        return replace(located, passed=lambda current: folders.passed(real, current))

    def _formats(self, store: ReadWrite) -> Formats:
        return EveryFormat(_reading(store), self.trusted)

    def _retire(self, name: TableName, store: ReadWrite) -> Retire:
        from firnline.stores.removers import ObjectRetire

        return ObjectRetire(store, self.settings_of(name))

    def settings_of(self, name: TableName) -> Mapping[str, str]:
        """Returns how the table's store is reached, by PyIceberg's names; what a catalog hands out for a table wins.

        A location without a catalog is reached as the catalog whose warehouse holds it, or as the only one; the rest
        is the environment's.
        """
        if name.catalog:
            said = {**self._configured(name.catalog).properties, **self.catalog(name.catalog).vended(name)}
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

    def check_store(self, location: str) -> StoreVerdicts:
        """Returns what the store at a location really does. Writes a few objects of its own and removes them again."""
        from firnline.stores.probe import StoreProbe

        named = absolute(location)
        return StoreProbe(self.settings_of(TableName.at(named))).probe(join(named, FOLDER), [named])

    def _prepare(self, work: TableContext, state: State, *, deletes: bool) -> None:
        """Raises unless the table's store can carry a run, asked once: no permission is missed only after a commit.

        Once for each catalog: another one's server may have the same bucket and the same folders.
        """
        from firnline.stores.probe import StoreProbe

        place = (work.source.name.catalog, work.root(state), state.location)
        if place not in self._probed:
            probe = StoreProbe(self.settings_of(work.source.name))
            self._probed[place] = probe.probe(
                place[1], list(dict.fromkeys((*state.owned, *_inside(work.source, state))))
            )
        refuse_unfit(self._probed[place], deletes=deletes)

    def _warnings(self, name: TableName, location: str) -> tuple[str, ...]:
        from firnline.stores.probe import StoreProbe

        return StoreProbe(self.settings_of(name)).surroundings(location).warnings()

    @cached_property
    def memory(self) -> OpenedCache:
        """What earlier plans found in units. A cache that was asked for and cannot be used is said, and left alone."""
        from firnline.caches.opening import open_memory

        setting, asked = cache_setting(self.config)
        key = os.environ.get(CACHE_KEY)
        memory = open_memory(setting, key, user_folder() / "cache.key", cache_folder())
        if memory.trouble and asked:
            logging.getLogger("firnline").warning("the cache %s is not used: %s", memory.place, memory.trouble)
        return memory

    def _sealing(self, make: bool) -> Sealing:
        """Returns with what the records of runs are sealed: a key of the operator, or else this user's own secret. Who
        only looks makes none: nothing was sealed with it then.
        """
        from firnline.caches.seal import own_secret, shared_secret

        key = os.environ.get(RECORDS_KEY)
        if key is not None:
            return Sealing(shared_secret(key, RECORDS_KEY), required=True)
        return Sealing(own_secret(user_folder() / "records.key", make=make))

    @cached_property
    def catalogs(self) -> Mapping[str, CatalogSettings]:
        """The configured catalogs, none of them opened: one that cannot be read must not hide the others."""
        from firnline.catalogs.config import load_catalogs

        return load_catalogs()

    def catalog(self, name: str) -> Catalog:
        from firnline.catalogs.config import open_catalog

        return open_catalog(self._configured(name))

    def _configured(self, catalog: str) -> CatalogSettings:
        return self.catalogs.get(catalog) or self._unconfigured[catalog]

    def tables(self, catalog: str | None = None) -> list[TableName]:
        """Returns every table of every configured catalog, or of one; or tables of a warehouse that no catalog has."""
        if catalog is not None and is_location(catalog):
            return self._in_warehouse(absolute(catalog))
        if catalog is not None and catalog not in self.catalogs:
            raise UsageError(f"no catalog {catalog!r}", hint=f"configured are: {', '.join(self.catalogs) or 'none'}")
        names = self.catalogs if catalog is None else [catalog]
        return [table for name in names for table in self.catalog(name).tables()]

    def _in_warehouse(self, location: str) -> list[TableName]:
        from firnline.stores.ranges import ObjectRanges

        store = self._store_at(location)
        folders = ObjectRanges(self.settings_of(TableName.at(location))).folders
        found = (each.below(store, location, folders) for each in kits() if isinstance(each, Warehouses))
        return [TableName.at(table) for tables in found for table in tables]

    def everyone(self) -> Iterator[TableName]:
        """Yields every table whose needs count: of each configured catalog, and of those that nobody configured and
        that keep their tables in the same database.
        """
        yield from self.tables()
        yield from (table for name in self._beside() for table in self.catalog(name).tables())

    def _beside(self) -> Mapping[str, CatalogSettings]:
        """Returns the catalogs that nobody configured and that have rows in the database of one that is."""
        from firnline.catalogs.config import unconfigured

        side_objects = unconfigured(self.catalogs)
        self._unconfigured.update(side_objects)
        return side_objects

    def _everyone(self, also: Sequence[str], searched: Sequence[str]) -> Iterator[Registered]:
        """Yields each table of every catalog, those that no catalog has but an operator named, and tables of warehouses
        that may share a searched folder with one of these; none of them is read.
        """
        alone = (*also, *sharing(also, searched, self._written, self._around))
        for name in (*self.everyone(), *map(TableName.at, alone)):
            yield Registered(name, self.address_of(name), None, partial(self.table_context, name))
        yield from (mirror for location in alone for mirror in self._mirrors_at(location))

    def _mirrors_at(self, location: str) -> Iterator[Registered]:
        return self._mirrors(self._kit_at(location).name, location)

    def _mirrors(self, table_format: str, location: str) -> Iterator[Registered]:
        """Yields the metadata that a table's writers keep for readers of another format, each document as a table."""
        for kit in (each for each in kits() if each.name == table_format and isinstance(each, Mirroring)):
            for each in map(TableName.at, kit.mirrors(self._store_at(location), location)):
                yield Registered(each, "", each.name, partial(self.table_context, each))

    def _written(self, location: str) -> Sequence[str]:
        kit = self._kit_at(location)
        return kit.written(self._store_at(location), location) if isinstance(kit, Warehouses) else ()

    def _around(self, location: str) -> Iterator[str]:
        """Yields the tables of the warehouse that one is in."""
        from firnline.stores.ranges import ObjectRanges

        kit, folders = self._kit_at(location), ObjectRanges(self.settings_of(TableName.at(location))).folders
        return kit.around(self._store_at(location), location, folders) if isinstance(kit, Warehouses) else iter(())

    def _kit_at(self, location: str) -> Kit:
        return kit_at(self._store_at(location), location)

    def _store_at(self, location: str) -> Read:
        return _reading(self.store_of(self.settings_of(TableName.at(location))))

    def _searchable(self, table: str) -> TableContext:
        """Returns where a table is worked on; or a folder, where there is no table at that location."""
        try:
            work = self.table_context(table)
            work.source.load()
        except NoSuchTable:
            if not is_location(table):
                raise
            return self._prefix(table)
        return work

    def _of_run(self, run: RunId) -> TableContext:
        """Returns where a run is worked on: at the folder that was searched, where it says so, or else at its table.

        A dropped table's folder still looks like a table, so the record decides.
        """
        if not is_location(run.table):
            return self.table_context(run.table)
        folder = self._prefix(run.table)
        state = folder.source.load()
        return folder if has_run(folder.store, folder.root(state), run, state.uuid) else self.table_context(run.table)

    def _prefix(self, folder: str) -> TableContext:
        """Returns where a folder with several tables is worked on."""
        location = absolute(folder)
        settings = self.settings_of(TableName.at(location))
        store = self.store_of(settings)
        return self._table_context(TablePlace(Prefix(location, self._formats(store)), store, settings))

    def _registered(self, locations: Sequence[str]) -> Iterator[Registered]:
        """Yields every table of every catalog, and those at the given locations; none of them is read."""
        addresses: dict[str, str] = {}
        for name, metadata in self.pointers():
            if name.catalog not in addresses:
                addresses[name.catalog] = self.address_of(name)
            yield Registered(name, addresses[name.catalog], metadata, partial(self.table_context, name))
        for each in map(TableName.at, map(absolute, locations)):
            yield Registered(each, "", None, partial(self.table_context, each))

    def pointers(self) -> Iterator[tuple[TableName, str | None]]:
        """Yields every table whose needs count, with its metadata's location where a listing tells."""
        return (each for name in (*self.catalogs, *self._beside()) for each in self.catalog(name).pointers())

    def address_of(self, name: TableName) -> str:
        """Returns what tells catalogs apart, by whatever name they are configured; nothing that is secret shows."""
        return self._configured(name.catalog).address if name.catalog else ""

    @cached_property
    def index(self) -> Index:
        """What is known of the references of all tables; one for the whole process."""
        from firnline.caches.expand import look_up
        from firnline.ops.neighbours.index import Index
        from firnline.stores.real_paths import RealPaths

        def excused(name: TableName) -> bool:
            return effective(self.config, name.catalog, name.namespace, name.name).sharing.value == NONE

        sealed = self.memory.sealed()
        return Index(sealed, lambda store, units: look_up(store, units).of, RealPaths, excused, self.progress)

    def table_context(self, table: Table) -> TableContext:
        """Returns everything that is needed to change a table, except the power to delete."""
        return self._table_context(self.place(table))

    def _table_context(self, place: TablePlace) -> TableContext:
        from firnline.stores.real_paths import RealPaths
        from firnline.stores.removers import OwnDiscard

        return TableContext(
            source=place.source,
            store=place.store,
            config=self.config,
            choose=self._choose,
            now=self.clock,
            owner=this_process(),
            index=self.index,
            lease_times=lease_times(),
            progress=self.progress,
            interrupted=self.interrupted,
            discard=OwnDiscard(place.settings),
            everyone=self._everyone,
            registered=self._registered,
            mirrors=self._mirrors,
            address=self.address_of(place.source.name),
            real=RealPaths(),
            sealing=self._sealing,
        )

    def _budget(self) -> Budget | None:
        """Returns the budget of deletes that all processes share, where Redis is configured; None for one's own."""
        setting, _ = cache_setting(self.config)
        if not setting.startswith(REDIS):
            return None
        from firnline.caches.budget import RedisBudget
        from firnline.stores.throttle import LocalBudget

        alone = LocalBudget()
        return RedisBudget(setting, alone.rate, alone)

    def _deleter(self, name: TableName, run: Run) -> Deleter:
        """Returns the power to delete: on executors where Spark was asked for or the list is long, else here."""
        from firnline.local.delete import LocalDeleteMany
        from firnline.stores.delete import ObjectDelete
        from firnline.stores.removers import LocalFolders

        here = (name.catalog, run.folder.root)
        probed = [found for place, found in self._probed.items() if place[:2] == here]
        honoured = bool(probed) and all(bool(found.if_match_delete) for found in probed)
        settings = self.settings_of(name)
        delete = ObjectDelete(settings, budget=self._budget(), conditional=honoured)
        many = run.plan["victims"]["files"] > _LARGE_PURGE
        if self.engine == "spark" or (self.engine == "auto" and many):
            from firnline.spark.delete import SparkDeleteMany
            from firnline.spark.session import session

            return Deleter(delete, SparkDeleteMany(session(self.session), of=str(name)), LocalFolders())
        return Deleter(delete, LocalDeleteMany(), LocalFolders())

    def source(self, table: Table) -> TableSource:
        """Returns the table of this name or location. Raises NoSuchTable."""
        return self.place(table).source

    def name_of(self, table: Table) -> TableName:
        """Returns the table that is meant: of a text, read here and nowhere else, the one that its catalog has.

        Raises NoSuchTable; UsageError where the text may mean several.
        """
        if isinstance(table, TableName):
            return table
        if is_location(table):
            return TableName.at(absolute(table))
        try:
            return self._literally(table)
        except NoSuchTable as missing:
            return self._listed_as(table, missing)

    def _literally(self, text: str) -> TableName:
        """Returns the table that the text names part by part, with its catalog or, where there is one, without."""
        first, *rest = parts_of(text)
        if first in self.catalogs and len(rest) > 1:
            name = TableName.of_parts(first, rest)
        elif len(self.catalogs) == 1 and rest:
            (only,) = self.catalogs
            name = TableName.of_parts(only, (first, *rest))
        else:
            known = ", ".join(self.catalogs) or "none is configured"
            hint = f"name it CATALOG.NAMESPACE.NAME, or give its location; catalogs: {known}"
            raise NoSuchTable(f"no such table: {text}", hint=hint)
        self.catalog(name.catalog).locate(name)
        return name

    def _listed_as(self, text: str, missing: NoSuchTable) -> TableName:
        """Returns the one listed table whose name is this text where no part stands in quotes."""
        names = [name for name in self.catalogs if len(self.catalogs) == 1 or text.startswith(f"{name}.")]
        found = [table for name in names for table in self.catalog(name).tables() if text in _plain_texts(table)]
        if not found:
            raise missing
        if len(found) > 1:
            shown = " or ".join(map(str, found))
            raise UsageError(f"{text} may mean several tables", hint=f"write {shown}")
        return found[0]

    def _choose(self, state: State, table_format: TableFormat, named: str) -> Engine:
        """Returns Spark for large work or where it was asked for; a small table must not wait for a session."""
        asked = named if self.engine == "auto" else self.engine
        if asked == "spark" or (asked == "auto" and is_large(state, table_format)):
            return self._spark(state.table)
        from firnline.local.engine import LocalEngine

        return LocalEngine(progress=self.progress, most_listed=_LARGE_LISTING if asked == "auto" else None)

    @property
    def trusted(self) -> frozenset[str]:
        """The snapshots whose manifest lists the operator vouches for: by an option, or in firnline.yaml."""
        return self.trust | trusted_snapshots(self.config)

    def _vouched(self, state: State) -> Iterator[str]:
        """Yields a note for each snapshot of the table that the operator vouches for."""
        for each in sorted(self.trusted & state.graph.by_id.keys()):
            yield f"the manifest list of snapshot {each} counts as whole: --trust-snapshot, or `trust-snapshots`"

    def _spark(self, of: str) -> Engine:
        from firnline.spark.engine import SparkEngine
        from firnline.spark.session import session

        return SparkEngine(session(self.session), self.progress, of)


def _reading(store: ReadWrite) -> Read:
    """Returns the store without any verb that changes it: all that formats and kits get, but for a commit."""
    from firnline.stores.wrappers.read_only import ReadOnly

    return ReadOnly(store)


def _plain_texts(table: TableName) -> tuple[str, str]:
    """Returns a table's name without quotes: with its catalog, and without."""
    inner = ".".join((*table.namespace, table.name))
    return f"{table.catalog}.{inner}", inner


def store_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns what of a catalog's properties is about stores: its own secrets stay with the catalog."""
    return {name: value for name, value in properties.items() if name.startswith(_OF_STORES)}


def _holds(properties: Mapping[str, str], location: str) -> bool:
    warehouse = properties.get("warehouse", "")
    return "/" in warehouse and within(warehouse, join(location, "x"))


def _commits(settings: CatalogSettings, store: ReadWrite) -> Commit:
    from firnline.catalogs.config import open_commits

    return open_commits(settings, store)


def absolute(location: str) -> str:
    """Returns a location that means the same from every folder, without a slash at its end."""
    named = "://" in location or location.startswith("file:")
    return (location if named else os.path.abspath(location)).rstrip("/")


def _inside(source: TableSource, state: State) -> Iterator[str]:
    """Yields the folders of a table in which a run deletes; of a folder with several tables none is known."""
    names = () if isinstance(source, Prefix) else kit_named(state.format).folders
    return (join(state.location, name) for name in names)


def is_large(state: State, table_format: TableFormat) -> bool:
    """Tells whether a walk is worth a Spark session, by what can be known of it beforehand."""
    return len(state.graph) > _LARGE_SNAPSHOTS or table_format.entries(state) > _LARGE_FILES


def lease_times() -> LeaseTimes:
    """Returns how long a lease lasts: FIRNLINE_LEASE, with a quarter of it as the margin on both sides."""
    length = parse_duration(os.environ.get("FIRNLINE_LEASE", "2m"))
    return LeaseTimes(length, length // 4)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
