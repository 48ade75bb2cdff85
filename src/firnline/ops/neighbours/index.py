"""The index of outward references: what every table of the lake needs outside its own folders.

A table is walked once, and again only by what is new since its metadata moved on: asking a lake of a thousand tables
costs two listings. What is remembered is named by the metadata that it was read from, which never changes under its
name; a table whose metadata has a name that could be given twice is read every time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from firnline.errors import (
    FirnlineError,
    NoSuchTable,
    PermanentStoreError,
    RefusedForSafety,
    StoreError,
    UnreadableMetadata,
    told_bug,
)
from firnline.model.files import File
from firnline.ops.neighbours.cards import (
    Card,
    LinksOf,
    cards_from_bytes,
    cards_to_bytes,
    is_where_it_was,
    walked_from_bytes,
    walked_to_bytes,
)
from firnline.ops.neighbours.folders import FolderMap, Folders, OwnFolders
from firnline.ops.reachability.live_roots import live_roots
from firnline.ops.runs.decision import usual_window_ms
from firnline.ops.table.context import Registered, TableContext
from firnline.ops.table.listings import ListTables, read_all
from firnline.policy.holds import last_over_ms
from firnline.ports.cache import Sealed
from firnline.ports.catalogs import TableName
from firnline.ports.expanding import Expand, SideBySide
from firnline.ports.formats import State
from firnline.ports.progress import Progress, Silent
from firnline.ports.stores import RealNames

if TYPE_CHECKING:
    from firnline.ops.neighbours.outward import StampsOf, Walked

ReadAll = Callable[[Sequence[Registered]], Iterable["tuple[Indexed, ...] | None"]]
"""Reads tables side by side, and returns what it found in their order."""
Opening = Callable[[TableContext, State, Iterable[File], int], tuple[Expand, "StampsOf"]]
"""Returns how a table's units are opened, where what they name may be remembered for this many milliseconds, and what
identifies their bytes, from a listing of where they lie.
"""

_THREADS = 8
_TRIES = 3
_LAYOUT = 6
"""Counts up whenever what was remembered before would be read wrongly, or would be wrong now."""
_UNIQUE = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}[^/]*$", re.IGNORECASE)
"""Names of metadata that no writer gives twice."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """One table of the lake as it is now: what the index has of it, and how it is reached."""

    registered: Registered
    card: Card

    @property
    def name(self) -> TableName:
        return self.registered.name

    def opened(self) -> tuple[TableContext, State]:
        """Returns the table's context and its state now. If its name is gone, the state comes from the metadata that
        was found a moment ago: the table may have been renamed since, and no listing has told the new name.
        """
        work = self.registered.open()
        try:
            return work, work.source.load()
        except NoSuchTable:
            return work, work.source.format.load(str(self.name), self.card.metadata)


C = TypeVar("C", Card, tuple[Indexed, ...])
Unreadable = list[tuple[Registered, RefusedForSafety]]
"""Tables that cannot be read, each with the reason: a question what one of them needs is refused with it."""


@dataclass
class Index:
    """What is known of the lake's tables, in memory and in the cache behind it. Tables that are worked on side by side
    share it: `_cards` only spares reading, is never changed in place, and no answer is taken from it that the asking
    thread did not check itself. Another thread may note, after a walk, what it had read before.

    `excused` tells of a table whether the operator says that it shares no file: if it cannot be read, nothing stops.
    `trusted` are the snapshots for whose units the operator vouches: what was found so is recalled only where the same
    are vouched for.
    """

    cache: Sealed
    opening: Opening
    real_names: Callable[[], RealNames]
    links_now: Callable[[], LinksOf]
    excused: Callable[[TableName], bool] = lambda name: False
    trusted: Set[str] = frozenset()
    progress: Progress = field(default_factory=Silent)
    real: RealNames = field(init=False, repr=False)
    _cards: dict[tuple[str, TableName], Card] = field(default_factory=dict, init=False, repr=False)
    _recalled: set[str] = field(default_factory=set, init=False, repr=False)
    _noting: Any = field(default_factory=Lock, init=False, repr=False)

    def placed(
        self, listed: ListTables, is_mine: Callable[[Registered], bool], unreadable: Unreadable | None = None
    ) -> list[Indexed]:
        """Returns the listed tables but mine with their folders as they are now, without those that were dropped.

        What is known of mine is kept; of any other table that is not listed it is forgotten. Raises RefusedForSafety if
        a table cannot be read, or is not at the location that the operator names: it may need any file. Where the
        caller gives a list for them, such tables are noted there instead, and are not among those returned.
        """
        self.real = self.real_names()  # links may have changed since the last look
        aside: set[tuple[str, TableName]] = set()
        read: dict[tuple[str, TableName], Card] = {}

        def others(afresh: bool) -> Iterator[Registered]:
            for each in listed(afresh):
                if is_mine(each):
                    aside.add(each.at)
                else:
                    yield each

        def indexed(table: Registered) -> tuple[Indexed, ...] | None:
            one = self._of(table, unreadable)
            read.update({each.registered.at: each.card for each in one or ()})
            return one

        try:
            with ThreadPoolExecutor(_THREADS) as pool:
                pages = read_all(others, lambda tables: self._indexed(tables, partial(pool.map, indexed)), _uuid_of)
        except FirnlineError:  # what was read before it is not read again by the next plan of this process
            self._note(read)
            raise
        found = [each for some in pages for each in some]
        known = {each.registered.at: each.card for each in found}
        with self._noting:
            self._cards = {**{at: self._cards[at] for at in aside & self._cards.keys()}, **known}
        return found

    def _note(self, cards: Mapping[tuple[str, TableName], Card]) -> None:
        with self._noting:
            self._cards = {**self._cards, **cards}

    def _indexed(self, tables: Sequence[Registered], read: ReadAll) -> Iterator[tuple[Indexed, ...] | None]:
        """Yields each table with its card; nothing for one that is excused, None for one whose name is gone."""
        for address in {each.address for each in tables} - self._recalled:
            self._recall(address)
        cards = {each.at: self._unchanged(each) for each in tables}
        found = iter(read([each for each in tables if cards[each.at] is None]))
        return (next(found) if (card := cards[each.at]) is None else (Indexed(each, card),) for each in tables)

    def _of(self, table: Registered, unreadable: Unreadable | None) -> tuple[Indexed, ...] | None:
        try:
            return self._read(table)
        except RefusedForSafety as problem:
            _set_aside(table, problem, unreadable)
            return ()

    def _read(self, table: Registered) -> tuple[Indexed, ...] | None:
        try:
            return (Indexed(table, self._card(table)),)
        except NoSuchTable as problem:
            if table.name.catalog:
                return None
            return self._excuse(table.name, problem, ())
        except FirnlineError as problem:
            return self._excuse(table.name, problem, ())

    def walked(
        self,
        tables: Mapping[int, Indexed],
        folders: FolderMap,
        now_ms: int,
        unreadable: Unreadable | None = None,
    ) -> list[Indexed]:
        """Returns the tables with their bridges as they are now, each known to `folders` by its number.

        Raises RefusedForSafety if one cannot be read. Where the caller gives a list for them, such tables are noted
        there instead: what is returned of them tells of no bridges.
        """
        owns = {
            number: OwnFolders(each.card.folders.owned, folders.holes(number, each.card.folders))
            for number, each in tables.items()
        }
        links_of = self.links_now()
        due = [
            (each, owns[number])
            for number, each in tables.items()
            if not each.card.tells_bridges(owns[number], now_ms, self.real, links_of)
        ]
        if not due:
            return list(tables.values())
        found: dict[tuple[str, TableName], Card] = {}
        try:
            for each, card in self._walk_all(due, now_ms, unreadable):
                if card is not None:
                    found[each.registered.at] = card
        finally:  # what was walked before one that cannot be read is not walked again by the next plan
            self._note(found)
        for address in {each.registered.address for each, _ in due}:
            self._remember(address)
        return [replace(each, card=found.get(each.registered.at, each.card)) for each in tables.values()]

    def _card(self, table: Registered) -> Card:
        """Returns what is known of a table: remembered, if its metadata is still the same, else read just now."""
        unchanged = self._unchanged(table)
        if unchanged is not None:
            return unchanged
        known = self._cards.get(table.at)
        work = table.open()
        state = work.source.load()
        if known is not None and known.metadata == state.fence and self._is_true(known):
            return known
        return Card(state.fence, state.uuid, Folders.of(state, work.source.format, self.real))

    def _unchanged(self, table: Registered) -> Card | None:
        """Returns what is remembered of a table, if the listing itself tells that it is still true."""
        known = self._cards.get(table.at)
        is_same = known is not None and known.metadata == table.metadata and self._is_true(known)
        return known if is_same else None

    def _is_true(self, known: Card) -> bool:
        """Tells whether a card is true as long as the table's metadata has that name."""
        return bool(_UNIQUE.search(known.metadata)) and known.folders.are_where_they_were(self.real)

    def _walk_all(
        self, due: Sequence[tuple[Indexed, OwnFolders]], now_ms: int, unreadable: Unreadable | None
    ) -> Iterator[tuple[Indexed, Card | None]]:
        """Yields each table with what a walk found; None for one that is noted as unreadable."""

        def card_of(each: Indexed, own: OwnFolders) -> Card | None:
            try:
                return self._card_of_walk(each, own, now_ms)
            except RefusedForSafety as problem:
                _set_aside(each.registered, problem, unreadable)
                return None

        with ThreadPoolExecutor(_THREADS) as pool:
            cards = SideBySide(pool)(lambda each: card_of(*each), due)
            for number, ((each, _), card) in enumerate(zip(due, cards, strict=True), 1):
                self.progress.step("asking other tables", number, len(due))
                yield each, card

    def _card_of_walk(self, each: Indexed, own: OwnFolders, now_ms: int) -> Card:
        """Returns what a walk found. What stands for an excused table has no `own`: it counts as never walked, for
        the table may come back, or the excuse end, with the same metadata.
        """
        try:
            return self._walk(each, own, now_ms)
        except FirnlineError as problem:
            return self._excuse(each.name, problem, each.card)
        except Exception as bug:  # of ours, in the face of that table's bytes: no other is to be lost with it
            return self._excuse(each.name, told_bug(str(each.name), bug), each.card)

    def _walk(self, each: Indexed, own: OwnFolders, now_ms: int) -> Card:
        """Returns what a walk found. A table that moved on meanwhile is walked again: what its own purge took away is
        missing from the version that was read before, and is no damage.
        """
        for _ in range(_TRIES):
            work, state = each.opened()
            try:
                return self._walk_at(each, own, work, state, now_ms)
            except UnreadableMetadata:
                if each.opened()[1].fence == state.fence:
                    raise
        return self._walk_at(each, own, *each.opened(), now_ms)

    def _walk_at(self, each: Indexed, own: OwnFolders, work: TableContext, state: State, now_ms: int) -> Card:
        """Returns what a walk found. The links are read before any name is followed: one that comes up between the two
        is not among those that the walk stands for.
        """
        from firnline.ops.neighbours.outward import UnitMeans, Walked, outward

        links = self.links_now()(own)
        real = self.real_names()
        name = None if links is None else _name_of_walked(each, own, links)
        files = [root.file for root in live_roots(work, state, now_ms)]
        walked = Walked() if name is None else self._walked_before(name, real)
        means = UnitMeans(*self.opening(work, state, files, _window_ms(work, state, now_ms)), real)
        bridges, met_links = outward(files, means, own, walked)
        if name is not None:
            self.cache.put(name, walked_to_bytes(walked))
        folders = Folders.of(state, work.source.format, real)
        stands = None if met_links or links is None else own
        return Card(state.fence, state.uuid, folders, stands, bridges, last_over_ms(state.holds, now_ms), links or "")

    def _walked_before(self, name: tuple[str | int, ...], real: RealNames) -> Walked:
        from firnline.ops.neighbours.outward import Walked

        said = self.cache.get(name)
        walked = Walked() if said is None else walked_from_bytes(said)
        every = (bridge for bridges in walked.leads.values() for bridge in bridges)
        return walked if all(is_where_it_was(bridge, real) for bridge in every) else Walked()

    def _recall(self, address: str) -> None:
        self._recalled.add(address)
        said = self.cache.get(self._name_of_cards(address))
        recalled = {(address, name): card for name, card in (() if said is None else cards_from_bytes(said))}
        with self._noting:
            self._cards = {**recalled, **self._cards}

    def _remember(self, address: str) -> None:
        cards = [(name, card) for (at, name), card in self._cards.items() if at == address]
        self.cache.put(self._name_of_cards(address), cards_to_bytes(cards))

    def _name_of_cards(self, address: str) -> tuple[str | int, ...]:
        return ("cards", _LAYOUT, address, *sorted(self.trusted))

    def _excuse(self, name: TableName, problem: FirnlineError, instead: C) -> C:
        """Returns what stands for an excused table. Raises RefusedForSafety for any other: it may need any file; and
        StoreError for one whose store did not answer, which it may the next time.
        """
        if self.excused(name):
            return instead
        if isinstance(problem, StoreError) and not isinstance(problem, PermanentStoreError):
            raise StoreError(f"{name} cannot be asked what it needs: {problem.message}", problem.flags) from problem
        raise RefusedForSafety(
            f"nobody can tell which files {name} needs: {problem.message}",
            hint=f"{problem.flags or 'repair or drop it'}; or say `sharing: none` for {name} in firnline.yaml, if it "
            "shares no file",
        ) from problem


def _uuid_of(one: tuple[Indexed, ...]) -> str:
    return one[0].card.uuid if one else ""


def _set_aside(table: Registered, problem: RefusedForSafety, unreadable: Unreadable | None) -> None:
    """Notes a table that cannot be read. Raises its problem where nobody wants such tables noted."""
    if unreadable is None:
        raise problem
    unreadable.append((table, problem))


def _window_ms(work: TableContext, state: State, now_ms: int) -> int:
    """Returns how long a plan of the table may recall what was found here: it opens the same units. Nothing where
    its policy cannot be read: that is its own plan's trouble, and no other's.
    """
    try:
        return usual_window_ms(state, work.source.name, work.config, now_ms)
    except FirnlineError:
        return 0


def _name_of_walked(each: Indexed, own: OwnFolders, links: str) -> tuple[str | int, ...]:
    """Returns the name of what is known of a table's units: true for its folders where they are now, and the links that
    lie below them.
    """
    where = repr(own), repr(sorted(each.card.folders.every)), links
    return ("walked", _LAYOUT, each.registered.address, str(each.name), each.card.uuid, *where)
