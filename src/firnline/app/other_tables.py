"""Which other tables there are: those whose needs count before anything of a table goes, none of them read here.

A data path outside of a table's own folder may be the same for every table that uses it. Nor do options tell who does:
they change, differ between branches, and a writer may bring its own. What a table wrote there is named in its metadata
for good. So a search of such a folder asks every table of the warehouse, as all tables of a catalog are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any

from firnline.app.catalogs import Catalogs, absolute
from firnline.app.stores import Stores
from firnline.formats.registry import kit_at, kits
from firnline.model.locations import identity
from firnline.model.names import is_location
from firnline.ops.orphans.neighbours import overlap
from firnline.ops.table.context import Registered, TableContext
from firnline.policy.parse import written_values
from firnline.ports.catalogs import TableName
from firnline.ports.kits import Kit, KnownAround, Mirroring, Warehouses
from firnline.ports.stores import Read


@dataclass(frozen=True, slots=True)
class OtherTables:
    """Lists the tables of the catalogs, of warehouses, and those that an operator named; `open` opens one."""

    catalogs: Catalogs
    stores: Stores
    open: Callable[[TableName], TableContext]

    def everyone(self, also: Sequence[str], searched: Sequence[str]) -> Iterator[Registered]:
        """Yields each table of every catalog, those that no catalog has but an operator named, here or in the
        configuration, and tables of warehouses that may share a searched folder with one of these; none of them is
        read.
        """
        yield from self.of_catalogs()
        yield from self.alone(self.with_sharers(also), searched)

    def with_sharers(self, also: Sequence[str]) -> tuple[str, ...]:
        """Returns these, and every location under any `shared-with`: what lies there needs files of other tables."""
        written = (each for value in written_values(self.stores.config, "shared-with") for each in value)
        return tuple(dict.fromkeys((*also, *(absolute(each) for each in written if is_location(each)))))

    def of_catalogs(self) -> Iterator[Registered]:
        """Yields each table of every catalog."""
        return self._addressed((name, None) for name in self.catalogs.everyone())

    def alone(self, also: Sequence[str], searched: Sequence[str]) -> Iterator[Registered]:
        """Yields the tables that no catalog has but an operator named, and those that may share a searched folder with
        one of these; and their mirrors.
        """
        alone = (*also, *self._sharing(also, searched))
        yield from (self._registered(TableName.at(location), "", None) for location in alone)
        yield from (mirror for location in alone for mirror in self._mirrors_at(location))

    def registered(self, locations: Sequence[str]) -> Iterator[Registered]:
        """Yields every table of every catalog, and those at the given locations; none of them is read."""
        yield from self._addressed(self.catalogs.pointers())
        yield from (self._registered(TableName.at(absolute(each)), "", None) for each in locations)

    def mirrors(self, table_format: str, location: str) -> Iterator[Registered]:
        """Yields the metadata that a table's writers keep for readers of another format, each document as a table."""
        for kit in (each for each in kits() if each.name == table_format and isinstance(each, Mirroring)):
            for document in kit.mirrors(self.stores.reading(location), location):
                yield self._registered(TableName.at(document), "", document)

    def table_around(self, store: Read, folder: str) -> str | None:
        """Returns a table that no catalog need list, whose data files lie in that folder; None if there is none."""
        found = (kit.table_around(store, folder) for kit in kits() if isinstance(kit, KnownAround))
        return next(filter(None, found), None)

    def in_warehouse(self, location: str) -> list[TableName]:
        """Returns the tables of a warehouse that no catalog has."""
        store, folders = self.stores.reading(location), self.stores.folders(location)
        found = (each.below(store, location, folders) for each in kits() if isinstance(each, Warehouses))
        return [TableName.at(table) for tables in found for table in tables]

    def _addressed(self, tables: Iterable[tuple[TableName, str | None]]) -> Iterator[Registered]:
        addresses: dict[str, str] = {}
        for name, metadata in tables:
            if name.catalog not in addresses:
                addresses[name.catalog] = self.catalogs.address_of(name)
            yield self._registered(name, addresses[name.catalog], metadata)

    def _registered(self, name: TableName, address: str, metadata: str | None) -> Registered:
        return Registered(name, address, metadata, partial(self.open, name))

    def _mirrors_at(self, location: str) -> Iterator[Registered]:
        return self.mirrors(self._kit_at(location).name, location)

    def _sharing(self, tables: Sequence[str], searched: Sequence[str]) -> list[str]:
        """Returns the tables around those of these that write to a searched folder outside, and are none of them."""
        named = {identity(table).rstrip("/") for table in tables}
        found: dict[str, None] = {}
        for table in tables:
            if any(overlap(one, folder) for one in self._written(table)[1:] for folder in searched):
                found |= dict.fromkeys(each for each in self._around(table) if identity(each).rstrip("/") not in named)
        return list(found)

    def _written(self, location: str) -> Sequence[str]:
        """Returns the folders that the table at a location writes to, its own first; none if there is no such table."""
        kit = self._kit_at(location)
        return kit.written(self.stores.reading(location), location) if isinstance(kit, Warehouses) else ()

    def _around(self, location: str) -> Iterable[str]:
        """Returns the tables of the warehouse that one is in."""
        kit, folders = self._kit_at(location), self.stores.folders(location)
        return kit.around(self.stores.reading(location), location, folders) if isinstance(kit, Warehouses) else ()

    def _kit_at(self, location: str) -> Kit:
        return kit_at(self.stores.reading(location), location)


@dataclass
class ListedOnce:
    """Lists the catalogs once for searches of many tables, and again if a table is gone since. Only for plans, as
    `OthersOnce` is: a purge lists for itself, before each batch.
    """

    tables: OtherTables
    _listed: list[Registered] | None = field(default=None, init=False, repr=False)
    _listing: Any = field(default_factory=Lock, init=False, repr=False)

    def everyone(self, also: Sequence[str], searched: Sequence[str], afresh: bool) -> Iterator[Registered]:
        """Yields what `OtherTables.everyone` does."""
        with self._listing:
            if self._listed is None or afresh:
                # Twice: a table that moves from one catalog to the next while these are listed may be in neither.
                twice = (each for _ in range(2) for each in self.tables.of_catalogs())
                self._listed = list({each.at: each for each in twice}.values())
            listed = self._listed
        yield from listed
        yield from self.tables.alone(self.tables.with_sharers(also), searched)
