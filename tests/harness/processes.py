"""One firnline process on a small world: the real composition root, with every port behind a fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from firnline.app.catalogs import Catalogs
from firnline.app.catalogs import Table as Named
from firnline.app.naming import Table, table_meant
from firnline.app.places import TablePlace
from firnline.catalogs.commits import SqlCommits
from firnline.catalogs.rest.catalog import RestCatalog
from firnline.catalogs.rest.commits import RestCommits
from firnline.catalogs.sql import SqlCatalog
from firnline.formats.registry import kit_named
from firnline.journal.lease import LeaseTimes
from firnline.lake import Lake
from firnline.model.holds import Hold
from firnline.model.names import is_location, parts_of
from firnline.ops.marks.holds import add_hold, release_hold
from firnline.ops.marks.tags import add_tag, remove_tag
from firnline.ops.table.sources import catalog_table
from firnline.patience import Patience
from firnline.policy.parse import Section, parse_policy
from firnline.ports.catalogs import Catalog, Commit, TableName
from firnline.stores.objects import ObjectStores
from firnline.stores.wrappers.read_only import ReadOnly
from firnline.stores.wrappers.retry import Retrying
from firnline.testing.dated import Clock, Dated
from firnline.testing.faults import Fault, NoFault
from firnline.testing.faulty import (
    FaultyCatalog,
    FaultyCommits,
    FaultyStore,
)
from firnline.testing.process_parts import OneByOne, ProcessPlaces, WorldStores

if TYPE_CHECKING:
    from firnline.ports.stores import ReadWrite

_numbers = count(1)
_HASTY = Patience(attempts=4, base_delay_s=0.0, max_delay_s=0.0)


class WorldCatalogs(Catalogs):
    """The catalogs of a world, each behind a fault."""

    def __init__(self, every: Mapping[str, SqlCatalog | RestCatalog], fault: Fault, namespace: str = "") -> None:
        super().__init__()
        self.every = every
        self.fault = fault
        self.namespace = namespace

    def open(self, name: str) -> Catalog:
        return FaultyCatalog(self.every[name], self.fault)

    def tables(self, catalog: str | None = None) -> list[TableName]:
        chosen = self.every if catalog is None else [catalog]
        return [table for each in chosen for table in self.open(each).tables()]

    def pointers(self) -> Iterator[tuple[TableName, str | None]]:
        """Yields the tables of the world. A REST server is shared: other namespaces there are other worlds', which
        change and break their tables.
        """
        for name, catalog in self.every.items():
            mine = (self.namespace,) if isinstance(catalog, RestCatalog) and self.namespace else None
            yield from (row for row in self.open(name).pointers() if mine is None or row[0].namespace == mine)

    def address_of(self, name: TableName) -> str:
        return f"the catalog {name.catalog} of this world" if name.catalog else ""

    def name_of(self, table: Named) -> TableName:
        """Returns the table of a full name, without a look at the catalog: every request of a process is a fault's."""
        if isinstance(table, TableName) or is_location(table):
            return super().name_of(table)
        catalog, *rest = parts_of(table)
        return TableName.of_parts(catalog, rest)


class WorldPlaces(ProcessPlaces):
    """The tables of a world's catalogs, with commits behind a fault."""

    stores: WorldStores
    catalogs: WorldCatalogs

    def place(self, table: Table) -> TablePlace:
        named = self.catalogs.name_of(table_meant(table))
        if not named.catalog:
            return super().place(named)
        store, fault = self.stores.store, self.stores.fault
        located = self.catalogs.open(named.catalog)
        commits = FaultyCommits(_commits(self.catalogs.every[named.catalog], store), fault)
        table_format = kit_named("iceberg").format(ReadOnly(store), self.trusted)
        return TablePlace(catalog_table(located, named, table_format, lambda: commits), store, self.stores.settings)


class Process(Lake):
    """Everything that the command line can do, as one process does it. Make a new one after every crash.

    `retrying` puts the store's own retries between the process and the fault. `settings` say how the store is reached.
    `beside` are other catalogs that it is configured with.
    """

    def __init__(
        self,
        catalog: SqlCatalog | RestCatalog,
        fault: Fault | None = None,
        *,
        clock: Clock | None = None,
        policy: str = "",
        lease: LeaseTimes | None = None,
        retrying: bool = False,
        settings: Mapping[str, str] | None = None,
        side_objects: Sequence[SqlCatalog] = (),
        namespace: str = "",
    ) -> None:
        config = parse_policy(policy, "a test's policy") if policy else Section()
        self.fault = fault or NoFault()
        self.clock = clock or Clock()
        said = dict(settings or {})
        store: ReadWrite = FaultyStore(ObjectStores(said), self.fault)
        self.store: ReadWrite = Dated(Retrying(store, _HASTY) if retrying else store, self.clock)
        every = {each.name: each for each in (catalog, *side_objects)}
        catalogs = WorldCatalogs(every, self.fault, namespace)
        stores = WorldStores(config, catalogs, self.fault, self.store, said)
        places = WorldPlaces(config, catalogs, stores, OneByOne("local"), clock=self.clock)
        places.owner = self.owner = f"process {next(_numbers)}"
        places.lease_times = lease or places.lease_times
        super().__init__(places)

    # ---- marks: what the command line does with a table

    def tag_add(self, table: str, name: str, snapshot: int | None = None, age_ms: int | None = None) -> None:
        add_tag(self.places.table_context(table), name, None if snapshot is None else str(snapshot), age_ms)

    def tag_remove(self, table: str, name: str) -> None:
        remove_tag(self.places.table_context(table), name)

    def hold_add(self, table: str, name: str, snapshot: int | None = None, until_ms: int | None = None) -> None:
        """Holds a snapshot, or the whole table where none is named."""
        held = None if snapshot is None else str(snapshot)
        add_hold(self.places.table_context(table), Hold(name, "somebody", "a test", held, until_ms))

    def hold_release(self, table: str, name: str) -> None:
        release_hold(self.places.table_context(table), name)


def _commits(catalog: SqlCatalog | RestCatalog, store: ReadWrite) -> Commit:
    return RestCommits(catalog) if isinstance(catalog, RestCatalog) else SqlCommits(catalog, store)
