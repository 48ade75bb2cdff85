"""The other tables of a lake, and which folders are whose: as they are just now, or by one look for many plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from threading import Lock
from typing import Any

from firnline.errors import FirnlineError, NoSuchTable, RefusedForSafety
from firnline.model.locations import identity
from firnline.model.names import is_location
from firnline.ops.neighbours.folders import FolderMap, Folders
from firnline.ops.neighbours.index import Index, Indexed, Unreadable
from firnline.ops.table.context import Registered, TableContext, has_uuid
from firnline.ports.formats import State

_READINGS = 5
Walk = Callable[[Mapping[int, Indexed], int], list[Indexed]]
"""Returns tables, by their numbers, with all that they need outside their own folders at an instant."""


@dataclass(frozen=True, slots=True)
class Others:
    """The other tables by their numbers in `folders`, where `number` is this table's own; `mine` are its folders as
    they are now, `named` are the patterns by which the operator names sharers.
    """

    tables: Mapping[int, Indexed]
    number: int
    folders: FolderMap
    mine: Folders
    named: tuple[str, ...]
    walk: Walk

    def is_named(self, each: Indexed) -> bool:
        """Tells whether the operator names the table: a location is only there because of that."""
        return not each.name.catalog or any(fnmatchcase(str(each.name), pattern) for pattern in self.named)

    def same(self, uuid: str) -> list[Indexed]:
        return [each for each in self.tables.values() if each.card.uuid == uuid]

    def doubted(self, state: State) -> list[Indexed]:
        """Returns the tables that may need any file of this one: the same table, and those in its folders. One that is
        at the very same version is this one by another name, and knows nothing that this one does not.
        """
        found = [*self.same(state.uuid), *(each for each, _ in self.sharers())]
        version = identity(state.fence)
        return list({id(each): each for each in found if identity(each.card.metadata) != version}.values())

    def holes(self, everywhere: bool) -> tuple[str, ...]:
        """Returns the folders of others inside its own; `everywhere`: also all those elsewhere, but not around them."""
        find = self.folders.foreign if everywhere else self.folders.holes
        return find(self.number, self.mine)

    def is_around(self, each: Indexed) -> bool:
        """Tells whether a folder of this table lies in one of the other: that one is no hole."""
        return any(own.startswith(each.card.folders.owned) for own in self.mine.owned)

    def sharers(self) -> Iterator[tuple[Indexed, str]]:
        """Yields the tables that use a folder of this one, each with that folder."""
        return ((self.tables[other], folder) for other, folder in self.folders.sharers(self.number, self.mine))

    def walked(self, now_ms: int) -> list[Indexed]:
        """Returns the tables that the operator does not name, with all that they need outside their own folders."""
        return self.walk({number: each for number, each in self.tables.items() if not self.is_named(each)}, now_ms)


FindOthers = Callable[[TableContext, State, tuple[str, ...]], Others]
"""Returns the other tables of one, given what the operator says that it is shared with."""


def others_now(work: TableContext, state: State, named: tuple[str, ...]) -> Others:
    """Returns the other tables as they are just now: for all that acts. Raises RefusedForSafety if one cannot be
    read.
    """
    locations = [each for each in named if is_location(each)]
    placed = work.index.placed(lambda afresh: work.registered(locations), lambda each: _is_mine_now(work, state, each))
    mine = Folders.of(state, work.source.format, work.index.real)
    tables = dict(enumerate(placed))
    folders = FolderMap([*((number, each.card.folders) for number, each in tables.items()), (len(tables), mine)])
    return Others(tables, len(tables), folders, mine, named, _walking(work.index, folders))


def _is_mine(work: TableContext, state: State, each: Registered) -> bool:
    if each.name == work.source.name:
        return True
    return each.is_at(work.source.name, work.address) and _is_one_with(work, state, each)


def _is_one_with(work: TableContext, state: State, each: Registered) -> bool:
    """Tells whether a table of this name at this address is the table itself by another name of its catalog: then it is
    always at the same version.

    1. A server tells its catalogs apart by more than an address, for example by who signs in.
    2. One of them got the table of another by `register_table`: the same name, the same uuid, and from then on versions
       of its own.
    3. Were that taken for the table, nobody would ask it what it needs.
    """
    try:
        for _ in range(_READINGS):
            other = each.open().source.load()
            if other.uuid != state.uuid or other.fence == state.fence:
                return other.uuid == state.uuid
            state = work.source.load()  # a commit may have come between the two readings
            if other.fence == state.fence:
                return True
    except NoSuchTable:
        return False
    return False


def _is_mine_now(work: TableContext, state: State, each: Registered) -> bool:
    """Tells whether a listing just now has this very table under that name.

    1. A look reads the table.
    2. The table is dropped, and a clone renamed to its name: the usual way to put an older version in its place.
    3. The listing has the clone under the table's name. Were that taken for the table, nobody would ask the clone.
    """
    if each.name != work.source.name:
        return _is_mine(work, state, each)
    return each.metadata == state.fence or has_uuid(each, state.uuid)


def _walking(index: Index, folders: FolderMap) -> Walk:
    return lambda tables, now_ms: index.walked(tables, folders, now_ms)


@dataclass
class _Look:
    """Every table of the lake as one look found it; `numbers` are those of the tables that are called alike, in any
    catalog; `unreadable` could not be read then.
    """

    index: Index
    tables: Mapping[int, Indexed]
    folders: FolderMap
    numbers: Mapping[tuple[tuple[str, ...], str], Sequence[int]]
    unreadable: Unreadable
    _walked: Mapping[int, Indexed] | None = field(default=None, init=False, repr=False)
    _unwalked: Unreadable = field(default_factory=list, init=False, repr=False)
    _walking: Any = field(default_factory=Lock, init=False, repr=False)

    def numbers_of(self, work: TableContext, state: State) -> list[int]:
        """Returns the registrations that are this very table."""
        name = work.source.name
        alike = self.numbers.get((name.namespace, name.name), ())
        return [number for number in alike if _is_mine(work, state, self.tables[number].registered)]

    def refuse_unreadable(self, work: TableContext, state: State) -> None:
        """Raises RefusedForSafety if any table but this one could not be read: it may need any file."""
        _refuse((each, problem) for each, problem in self.unreadable if not _is_mine(work, state, each))

    def walk(self, tables: Mapping[int, Indexed], now_ms: int) -> list[Indexed]:
        """Returns tables as all were walked by the first who asks. Raises RefusedForSafety if one of these could not
        be: another that could not may be the very table that is planned, and nobody asks that one. If a store did not
        answer, each who asks has those walked that it asks for.
        """
        with self._walking:
            if self._walked is None:
                try:
                    walked = self.index.walked(self.tables, self.folders, now_ms, self._unwalked)
                    self._walked = dict(zip(self.tables, walked, strict=True))
                except FirnlineError:
                    self._walked = {}
        if not self._walked:
            return self.index.walked(tables, self.folders, now_ms)
        asked = {each.registered.at for each in tables.values()}
        _refuse((each, problem) for each, problem in self._unwalked if each.at in asked)
        return [self._walked[number] for number in tables]


def _refuse(unreadable: Iterable[tuple[Registered, RefusedForSafety]]) -> None:
    for _, problem in unreadable:
        raise RefusedForSafety(problem.message, hint=problem.flags) from problem


@dataclass
class OthersOnce:
    """Finds the other tables by one look at the lake, for plans of many of its tables: a listing for each of them would
    be as many listings as there are tables.

    Only for plans: they change nothing, and are shown as of the time when they were begun. All that acts finds the
    others by itself when it does, and a table that was made since then is seen there. So is the table planned here, if
    the look has not got it, or another state of its folders.
    """

    _looks: dict[tuple[str, ...], _Look | None] = field(default_factory=dict, init=False, repr=False)
    _looking: Any = field(default_factory=Lock, init=False, repr=False)

    def __call__(self, work: TableContext, state: State, named: tuple[str, ...]) -> Others:
        look = self._look(work, tuple(each for each in named if is_location(each)))
        if look is None:
            return others_now(work, state, named)
        look.refuse_unreadable(work, state)
        numbers = look.numbers_of(work, state)
        mine = Folders.of(state, work.source.format, look.index.real)
        if len(numbers) != 1 or look.tables[numbers[0]].card.folders != mine:
            return others_now(work, state, named)
        tables = {number: each for number, each in look.tables.items() if number != numbers[0]}
        return Others(tables, numbers[0], look.folders, mine, named, look.walk)

    def _look(self, work: TableContext, locations: Sequence[str]) -> _Look | None:
        """Returns every table; None if a catalog or a store did not answer: then each plan asks for itself."""
        key = tuple(locations)
        with self._looking:
            if key not in self._looks:
                self._looks[key] = _look_around(work, locations)
            return self._looks[key]


def _look_around(work: TableContext, locations: Sequence[str]) -> _Look | None:
    unreadable: Unreadable = []
    try:
        placed = work.index.placed(lambda afresh: work.registered(locations), lambda each: False, unreadable)
    except FirnlineError:
        return None
    numbers: dict[tuple[tuple[str, ...], str], list[int]] = {}
    for number, each in enumerate(placed):
        numbers.setdefault((each.name.namespace, each.name.name), []).append(number)
    folders = FolderMap((number, each.card.folders) for number, each in enumerate(placed))
    return _Look(work.index, dict(enumerate(placed)), folders, numbers, unreadable)
