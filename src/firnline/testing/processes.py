"""One firnline process on a small world: the real composition root, with every port behind a fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from firnline.app import Lake, TablePlace
from firnline.app.places import Table
from firnline.catalogs.commits import SqlCommits
from firnline.catalogs.rest.catalog import RestCatalog
from firnline.catalogs.rest.commits import RestCommits
from firnline.catalogs.sql import SqlCatalog
from firnline.formats.registry import kit_named
from firnline.journal.lease import LeaseTimes
from firnline.journal.runs import Run
from firnline.local.delete import LocalDeleteMany
from firnline.model.holds import Hold
from firnline.model.names import is_location, parts_of
from firnline.ops.marks.holds import add_hold, release_hold
from firnline.ops.marks.tags import add_tag, remove_tag
from firnline.ops.runs.purge import Deleter
from firnline.ops.table.context import TableContext
from firnline.ops.table.sources import catalog_table
from firnline.policy.parse import Section, parse_policy
from firnline.ports.catalogs import Commit, TableName
from firnline.stores.delete import ObjectDelete
from firnline.stores.objects import ObjectStores
from firnline.stores.removers import LocalFolders, OwnDiscard
from firnline.stores.wrappers.read_only import ReadOnly
from firnline.stores.wrappers.retry import Patience, Retrying
from firnline.testing.dated import Clock, Dated
from firnline.testing.faults import Fault, NoFault
from firnline.testing.faulty import (
    FaultyCatalog,
    FaultyCommits,
    FaultyDelete,
    FaultyDiscard,
    FaultyFolders,
    FaultyStore,
)

if TYPE_CHECKING:
    from firnline.ports.stores import ReadWrite

_numbers = count(1)
_HASTY = Patience(attempts=4, base_delay_s=0.0, max_delay_s=0.0)


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
        super().__init__(parse_policy(policy, "a test's policy") if policy else Section(), engine="local")
        self.fault = fault or NoFault()
        self.every = {each.name: each for each in (catalog, *side_objects)}
        self.clock = clock or Clock()
        self.lease_times = lease or LeaseTimes(24_000, 6_000, skew_ms=0)
        self.owner = f"process {next(_numbers)}"
        self.settings = dict(settings or {})
        self.namespace = namespace
        store: ReadWrite = FaultyStore(ObjectStores(self.settings), self.fault)
        self.store: ReadWrite = Dated(Retrying(store, _HASTY) if retrying else store, self.clock)

    # ---- marks: what the command line does with a table

    def tag_add(self, table: str, name: str, snapshot: int | None = None, age_ms: int | None = None) -> None:
        add_tag(self.table_context(table), name, None if snapshot is None else str(snapshot), age_ms)

    def tag_remove(self, table: str, name: str) -> None:
        remove_tag(self.table_context(table), name)

    def hold_add(self, table: str, name: str, snapshot: int | None = None, until_ms: int | None = None) -> None:
        """Holds a snapshot, or the whole table where none is named."""
        held = None if snapshot is None else str(snapshot)
        add_hold(self.table_context(table), Hold(name, "somebody", "a test", held, until_ms))

    def hold_release(self, table: str, name: str) -> None:
        release_hold(self.table_context(table), name)

    # ---- where faults come in

    def tables(self, catalog: str | None = None) -> list[TableName]:
        chosen = self.every.values() if catalog is None else [self.every[catalog]]
        return [table for each in chosen for table in FaultyCatalog(each, self.fault).tables()]

    def pointers(self) -> Iterator[tuple[TableName, str | None]]:
        """Yields the tables of the world. A REST server is shared: other namespaces there are other worlds', which
        change and break their tables.
        """
        for catalog in self.every.values():
            mine = (self.namespace,) if isinstance(catalog, RestCatalog) and self.namespace else None
            found = FaultyCatalog(catalog, self.fault).pointers()
            yield from (row for row in found if mine is None or row[0].namespace == mine)

    def address_of(self, name: TableName) -> str:
        return f"the catalog {name.catalog} of this world" if name.catalog else ""

    def settings_of(self, name: TableName) -> Mapping[str, str]:
        return self.settings

    def store_of(self, settings: Mapping[str, str]) -> ReadWrite:
        return self.store

    def name_of(self, table: Table) -> TableName:
        """Returns the table of a full name, without a look at the catalog: every request of a process is a fault's."""
        if isinstance(table, TableName) or is_location(table):
            return super().name_of(table)
        catalog, *rest = parts_of(table)
        return TableName.of_parts(catalog, rest)

    def place(self, table: Table) -> TablePlace:
        named = self.name_of(table)
        if not named.catalog:
            return super().place(named)
        located = FaultyCatalog(self.every[named.catalog], self.fault)
        commits = FaultyCommits(self._commits(self.every[named.catalog]), self.fault)
        table_format = kit_named("iceberg").format(ReadOnly(self.store), self.trusted)
        return TablePlace(catalog_table(located, named, table_format, lambda: commits), self.store, self.settings)

    def _table_context(self, place: TablePlace) -> TableContext:
        return replace(
            super()._table_context(place),
            now=self.clock,
            owner=self.owner,
            lease_times=self.lease_times,
            discard=FaultyDiscard(OwnDiscard(self.settings), self.fault),
        )

    def _deleter(self, name: TableName, run: Run) -> Deleter:
        """Returns the power to delete, one key after another: so that the n-th delete is always the same."""
        folders = FaultyFolders(LocalFolders(), self.fault)
        return Deleter(FaultyDelete(ObjectDelete(self.settings), self.fault), LocalDeleteMany(threads=1), folders)

    def _commits(self, catalog: SqlCatalog | RestCatalog) -> Commit:
        return RestCommits(catalog) if isinstance(catalog, RestCatalog) else SqlCommits(catalog, self.store)
