"""Every table of the lake as it was read after a listing had ended, and what of it matters to one search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from firnline.model.files import Root
from firnline.model.locations import join, known_as
from firnline.ops.orphans.forks import Forks
from firnline.ops.orphans.neighbours import Here, Needed, Neighbour, PointedByStrangers, all_tables, by_server
from firnline.ops.orphans.rules import Rules, SearchRequest
from firnline.ops.orphans.scope import Scope
from firnline.ops.orphans.strangers import Known
from firnline.ops.orphans.touching import Touching
from firnline.ops.table.listings import ListTables
from firnline.ports.engines import ServerRoots
from firnline.ports.formats import Formats
from firnline.ports.listings import WrittenFolder


@dataclass(frozen=True)
class TablesNow:
    """The tables that count for every search: what all of them ask is looked up once. `private` are all others, each of
    which counts for some.
    """

    tables: tuple[Neighbour, ...]
    asked: SearchRequest
    now_ms: int
    private: tuple[Neighbour, ...] = ()

    @staticmethod
    def read(everyone: ListTables, asked: SearchRequest, now_ms: int) -> TablesNow:
        """Returns every table, read just now. Raises where any cannot be read: it may need any file of any other."""
        return TablesNow(tuple(all_tables(everyone)), asked, now_ms)

    @property
    def cutoff_ms(self) -> int:
        return self.asked.cutoff_ms(self.now_ms)

    @cached_property
    def by_uuid(self) -> Mapping[str, Sequence[Neighbour]]:
        found: dict[str, list[Neighbour]] = {}
        for each in self.tables:
            found.setdefault(each.state.uuid, []).append(each)
        return found

    @cached_property
    def catalogs(self) -> tuple[str, ...]:
        return tuple(sorted({each.work.source.name.catalog for each in self.tables} - {""}))

    @cached_property
    def known(self) -> Known:
        return Known.of(self.tables, self.asked.same, self.cutoff_ms)

    def needed(self) -> Iterator[Needed]:
        """Yields what these tables need, by their uuid, and what pointers of strangers in their folders lead to."""
        own = ((each, file) for each in self.tables for file in each.needs(self.now_ms))
        return ((each, Root(file, True, each.state.uuid)) for each, file in chain(own, self.strangers.needs()))

    @cached_property
    def strangers(self) -> PointedByStrangers:
        return PointedByStrangers(self.tables)

    @cached_property
    def pointed(self) -> Touching[tuple[Neighbour, str]]:
        """The metadata that pointers name, by its folder, each with the table in whose folder the pointer is."""
        return pointed_documents(self.tables, self.strangers, self.asked)

    def by_server(self, needed: Iterable[Needed], here: Here) -> tuple[ServerRoots, ...]:
        return by_server((*self.tables, *self.private), needed, here)

    @cached_property
    def folders(self) -> Touching[Neighbour]:
        written = ((place.folder, each) for each in self.tables for place in each.places)
        owned = ((folder, each) for each in self.tables for folder in each.state.owned)
        return Touching([*owned, *written])

    @cached_property
    def records(self) -> Touching[str]:
        return Touching([(folder, folder) for folder in self.every_record])

    @cached_property
    def every_record(self) -> Sequence[str]:
        """Where firnline keeps what it knows of each table. Raises RefusedForSafety where a table leads elsewhere."""
        return records_of(self.tables)

    @cached_property
    def by_name(self) -> tuple[str, ...]:
        """The folders in which no writer gives a name twice: for all searches alike, as all compare names alike."""
        every = (*self.tables, *self.private)
        return tuple(sorted({folder for each in every if each.unique_names for folder in each.state.owned}))


@dataclass(frozen=True)
class TablesOfSearch:
    """All tables that count for one search: those that count for every one, and its own."""

    lake: TablesNow
    scope: Scope
    own: tuple[Neighbour, ...] = ()

    def __len__(self) -> int:
        return len(self.lake.tables) + len(self.own)

    @cached_property
    def every(self) -> tuple[Neighbour, ...]:
        return (*self.lake.tables, *self.own)

    @cached_property
    def insiders(self) -> list[Neighbour]:
        """Returns the tables whose files are searched."""
        some = self.every if self.scope.uuid is None else self.of(self.scope.uuid)
        return self.scope.insiders(some, self.lake.now_ms)

    def of(self, uuid: str) -> list[Neighbour]:
        return [*self.lake.by_uuid.get(uuid, ()), *(each for each in self.own if each.state.uuid == uuid)]

    @cached_property
    def known(self) -> Known:
        return self.lake.known.beside(self.own) if self.own else self.lake.known

    @cached_property
    def strangers(self) -> PointedByStrangers:
        return PointedByStrangers(self.own)

    def pointed(self) -> list[tuple[Neighbour, str]]:
        """Returns the metadata that pointers name and that lies where the search looks, each with the table in whose
        folder the pointer is.
        """
        own = pointed_documents(self.own, self.strangers, self.lake.asked)
        folders = [known_as(each, self.lake.asked.same) for each in self.scope.folders]
        return [*self.lake.pointed(folders), *own(folders)]

    def forks(self) -> Forks:
        return Forks(self.of, self.lake.asked.same, self.lake.cutoff_ms)

    def rules(self, formats: Formats) -> Rules:
        scope, lake = self.scope, self.lake
        departed = () if scope.departed is None else formats.of(scope.departed).places(scope.departed)
        places = scope.places(self.insiders, (*departed, *self._backups()))
        foreign = scope.foreign(self._near(), self.insiders, places, lake.now_ms)
        records = {*self._records(), *records_of(self.own), *(join(each, "_firnline") for each in scope.folders)}
        return Rules(lake.cutoff_ms, places, foreign, tuple(sorted(records)), lake.asked.same, lake.by_name)

    def _backups(self) -> Iterator[WrittenFolder]:
        """Yields where writers of the searched tables leave earlier versions of metadata, if those are not kept for
        ever.
        """
        kept_ms = self.lake.asked.backups_ms
        if kept_ms is None:
            return
        for each in self.insiders:
            yield from (replace(place, cutoff_ms=self.lake.now_ms - kept_ms) for place in each.backups)

    def _near(self) -> Sequence[Neighbour]:
        """Returns the tables with a folder that touches the searched ones: no other one's is the beginning of what is
        listed there. Where the operator knows folders as others, any may be.
        """
        return self.every if self._asks_all else [*self.lake.folders(self.scope.folders), *self.own]

    def _records(self) -> Sequence[str]:
        return self.lake.every_record if self._asks_all else self.lake.records(self.scope.folders)

    @property
    def _asks_all(self) -> bool:
        return bool(self.lake.asked.same) or self.scope.uuid is None


def pointed_documents(
    tables: Sequence[Neighbour], strangers: PointedByStrangers, asked: SearchRequest
) -> Touching[tuple[Neighbour, str]]:
    own = ((each, version) for each in tables for version in each.pointed)
    named = ((each, version.pointer.metadata) for each, version in chain(own, strangers.found))
    return Touching([(known_as(key, asked.same).rpartition("/")[0], (each, key)) for each, key in named])


def records_of(tables: Sequence[Neighbour]) -> Sequence[str]:
    return sorted({folder for each in tables for folder in each.work.own_folders(each.state)})
