"""Every table of every configured catalog, each as it is now: a search must know every table that uses a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

from firnline.errors import NoSuchTable
from firnline.model.files import File, FileKind, Root
from firnline.model.locations import identity, parse_location, stem_of, within
from firnline.ops.reachability.pointed import (
    folder_pointers,
    needed_files,
    own_versions,
    refuse_outside,
    versions_behind,
)
from firnline.ops.table.context import Registered, TableContext
from firnline.ops.table.listings import ListTables, read_all
from firnline.ports.abilities import FolderPointer, KeepsBackups, PointedVersion
from firnline.ports.engines import ServerRoots
from firnline.ports.expanding import EXPECTS, ROW_COLUMNS, Expand, Expanded, Together, joined, one_order
from firnline.ports.formats import State
from firnline.ports.listings import WrittenFolder
from firnline.ports.stores import shared

_THREADS = 16


@dataclass(frozen=True)
class Neighbour:
    """One table, and where it is worked on."""

    work: TableContext
    state: State

    @property
    def server(self) -> str:
        return self.work.server

    @property
    def unique_names(self) -> bool:
        return self.work.source.format.unique_names

    @cached_property
    def places(self) -> tuple[WrittenFolder, ...]:
        return self.work.source.format.places(self.state)

    @property
    def backups(self) -> tuple[WrittenFolder, ...]:
        """Where its writers leave earlier versions of metadata, if they do."""
        table_format = self.work.source.format
        return (table_format.backups(self.state),) if isinstance(table_format, KeepsBackups) else ()

    @cached_property
    def pointers(self) -> tuple[FolderPointer, ...]:
        """All that are in its folder, also those of other tables."""
        return folder_pointers(self.work.source.format, self.state)

    @cached_property
    def pointed(self) -> tuple[PointedVersion, ...]:
        """What its own pointers lead to."""
        return own_versions(self.work.source.format, self.state, self.pointers)

    def behind(self, pointers: Iterable[FolderPointer]) -> tuple[PointedVersion, ...]:
        return versions_behind(self.work.source.format, self.state, pointers)

    def needs(self, now_ms: int) -> Iterator[File]:
        from firnline.ops.reachability.live_roots import live_roots

        return (root.file for root in live_roots(self.work, self.state, now_ms, pointed=self.pointed))


Needed = tuple[Neighbour, Root]
"""What a table needs."""


@dataclass(frozen=True)
class PointedByStrangers:
    """What pointers lead to that lie in a known table's folder and are none of its own, nor of another known table
    there: a table that was dropped and made again left them, or a catalog has it that nobody configured.
    """

    tables: Sequence[Neighbour]

    @cached_property
    def found(self) -> list[tuple[Neighbour, PointedVersion]]:
        """Each folder is asked once, however many tables share it."""
        by_folder: dict[str, list[Neighbour]] = {}
        for each in self.tables:
            by_folder.setdefault(stem_of(each.state.location), []).append(each)
        return [(some[0], version) for some in by_folder.values() for version in self._in_folder(some)]

    @staticmethod
    def _in_folder(tables: Sequence[Neighbour]) -> tuple[PointedVersion, ...]:
        strange = (each for each in tables[0].pointers if not any(each.is_of(table.state.uuid) for table in tables))
        return tables[0].behind(strange)

    def needs(self) -> Iterator[tuple[Neighbour, File]]:
        return ((each, file) for each, version in self.found for file in needed_files([version]))

    def refuse_outside(self, folders: Sequence[str]) -> None:
        """Raises RefusedForSafety if one in these folders leads to metadata elsewhere. In other folders that is no
        matter of a search here: what any stranger far away needs, nobody can know.
        """
        here = (version for _, version in self.found if any(within(each, version.pointer.key) for each in folders))
        refuse_outside(here)


def all_tables(everyone: ListTables) -> list[Neighbour]:
    """Returns every table, read just now. Raises where any cannot be read: its files would look like garbage.

    One that was dropped between being named and being read is left out: it needs nothing any more. One that was
    named by its location must be there: its needs were meant to count.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        return read_all(everyone, lambda tables: pool.map(_loaded, tables), lambda each: each.state.uuid)


def _loaded(table: Registered) -> Neighbour | None:
    try:
        work = table.open()
        return Neighbour(work, work.source.load())
    except NoSuchTable:
        if not table.name.catalog:
            raise
        return None


@dataclass(frozen=True, slots=True)
class EachItsOwn:
    """Opens every unit with the means of the table whose store it lies in. Picklable, as each of them is.

    `by_folder` are tables whose units lie in one folder each, in a format of their own. A unit may take away what
    another one names; here all that any unit names counts, added or taken away: what no unit names is garbage for
    sure, and the rest is an expiry's to judge.
    """

    by_folder: Mapping[str, Expand]
    by_stem: Mapping[str, Expand]
    otherwise: Expand

    @property
    def order(self) -> tuple[FileKind, ...]:
        """The kinds of all formats, each after those that go before it in any of them."""
        return one_order({each.order for each in (self.otherwise, *self.by_stem.values(), *self.by_folder.values())})

    @property
    def folds(self) -> bool:
        return False

    def share(self, parts: int) -> EachItsOwn:
        folders, stems = (
            {name: shared(each, parts) for name, each in some.items()} for some in (self.by_folder, self.by_stem)
        )
        return EachItsOwn(folders, stems, shared(self.otherwise, parts))

    def __call__(self, units: Sequence[File], together: Together = map) -> Expanded:
        owned: dict[str, list[int]] = {}
        for number, unit in enumerate(units):
            owned.setdefault(self._owner(unit.key), []).append(number)
        return joined(
            (numbers, _plain(self._of(owner)([units[number] for number in numbers], together)))
            for owner, numbers in owned.items()
        )

    def _owner(self, key: str) -> str:
        folder = identity(key).rpartition("/")[0]
        return folder if folder in self.by_folder else _stem(key)

    def _of(self, owner: str) -> Expand:
        return self.by_folder.get(owner) or self.by_stem.get(owner, self.otherwise)


def _plain(found: Expanded) -> Expanded:
    """Returns what units name, without what takes it away again; but with what is expected below each of it, or a unit
    that was cut would seem whole.
    """
    columns = [*ROW_COLUMNS, EXPECTS] if EXPECTS in found.rows.schema.names else list(ROW_COLUMNS)
    return Expanded(found.rows.select(columns), found.of)


@dataclass(frozen=True, slots=True)
class Here:
    """Where a search or a plan is made: how units are opened that lie where no table does, and on which server."""

    expand: Expand
    server: str


def by_server(tables: Sequence[Neighbour], needed: Iterable[Needed], here: Here) -> tuple[ServerRoots, ...]:
    """Returns what the tables need, in one part for each server; that of `here` is the first, even if it is empty.

    1. Production and its rehearsal are on two servers, and buckets and objects are called alike.
    2. One of the tables reads a unit of the other's bucket, by its name.
    3. If the bucket alone told who opens it: a unit of production would be read as the rehearsal has it, and what it
       names there would count in place of what is needed here.
    """
    parts: dict[str, tuple[list[Neighbour], list[Root]]] = {here.server: ([], [])}
    for each in tables:
        parts.setdefault(each.server, ([], []))[0].append(each)
    for each, root in needed:
        parts[each.server][1].append(root)
    return tuple(ServerRoots(roots, _expand_of(some, server, here), server) for server, (some, roots) in parts.items())


def _expand_of(neighbours: Sequence[Neighbour], server: str, here: Here) -> EachItsOwn:
    """Returns how units of a server are opened: by the settings of the catalog whose table lives in the same bucket."""
    means = [(each, each.work.source.format.expand) for each in reversed(neighbours)]
    folders = {
        identity(place.folder).rstrip("/"): expand
        for each, expand in means
        if each.work.source.format.paths_follow_folder
        for place in each.places
        if any(kind in expand.order for _, kind in place.names)
    }
    anywhere = [(each, expand) for each, expand in means if not each.work.source.format.paths_follow_folder]
    stems = {_stem(each.state.location): expand for each, expand in anywhere}
    otherwise = here.expand if server == here.server or not anywhere else anywhere[-1][1]
    return EachItsOwn(folders, stems, otherwise)


def _stem(key: str) -> str:
    location = parse_location(key)
    return f"{location.scheme}://{location.authority}"


def overlap(one: str, other: str) -> bool:
    """Tells whether two folders are the same, or one lies in the other."""
    return identity(one).rstrip("/") == identity(other).rstrip("/") or within(one, other) or within(other, one)


def outermost(folders: Iterable[str]) -> tuple[str, ...]:
    """Returns the folders without those that lie in another one of them, so that nothing is listed twice."""
    distinct = {stem_of(folder): folder for folder in folders}
    kept: list[str] = []
    for stem in sorted(distinct):  # what lies in a folder comes right behind it
        if not kept or not stem.startswith(kept[-1]):
            kept.append(stem)
    stays = set(kept)
    return tuple(folder for stem, folder in distinct.items() if stem in stays)
