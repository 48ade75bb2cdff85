"""Searching many tables at once: one listing, then one look at every table of the lake, then one census for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain

from firnline.errors import FirnlineError
from firnline.model.files import File, Root
from firnline.ops.orphans.neighbours import Needed, Neighbour, all_tables
from firnline.ops.orphans.pieces import pieces_of
from firnline.ops.orphans.rules import SearchRequest
from firnline.ops.orphans.scope import Scope
from firnline.ops.orphans.search import CountedSearch, Means
from firnline.ops.orphans.tables_now import TablesNow, TablesOfSearch
from firnline.ops.table.listings import ListTables
from firnline.ports.engines import Census, TableSearch
from firnline.ports.formats import Formats
from firnline.ports.listings import Sort

_THREADS = 4


@dataclass(frozen=True, slots=True)
class Sought:
    """One of several searches: where it looks, and by what metadata that lies there is read. `entries` is about how
    many files there are; `own` lists tables that count for this search, beside those that count for every one.
    """

    scope: Scope
    formats: Formats
    entries: int
    own: ListTables | None = None


@dataclass(frozen=True, slots=True)
class _Ready:
    """A search that can be counted, and what its own tables need: as the searched table, or as others."""

    sought: Sought
    tables: TablesOfSearch
    sort: Sort
    asked: TableSearch
    needed: Sequence[Needed]


def search_together(
    sought: Sequence[Sought], asked: SearchRequest, means: Means
) -> Iterator[CountedSearch | FirnlineError]:
    """Yields each of several searches as one listing and one census of all of them found it: what `search` says of the
    scope is what its `result` says; or what stops it alone. Raises where a table that counts for all cannot be read: it
    may need any file.

    The order is that of one search, for all of them at once:
    1. All folders are listed to their end.
    2. Then names of tables are listed, each table is read, and its units are opened.
    If a table were read while another folder is still being listed: a file that it imports there meanwhile would be
    listed after that, and nobody would be known to need it.
    """
    folders: dict[str, int] = {}
    for each in sought:
        folders |= {folder: folders.get(folder, 0) + each.entries for folder in each.scope.folders}
    listing = means.engine.list(pieces_of(folders, means.engine, means.ranges), means.ranges)
    lake, found = _ready(sought, asked, means)
    ready = [each for each in found if isinstance(each, _Ready)]
    needs = lake.by_server(chain(lake.needed(), *(each.needed for each in ready)), means.here)
    censuses = means.engine.censuses(listing, [each.asked for each in ready], needs)
    yield from (one if isinstance(one, FirnlineError) else _counted(one, next(censuses), means) for one in found)


def _counted(ready: _Ready, census: Census | FirnlineError, means: Means) -> CountedSearch | FirnlineError:
    if isinstance(census, FirnlineError):
        return census
    return CountedSearch(ready.tables, ready.sought.formats, ready.sort, means.live, census)


def _ready(
    sought: Sequence[Sought], asked: SearchRequest, means: Means
) -> tuple[TablesNow, list[_Ready | FirnlineError]]:
    """Returns every table, read just now, and each search; or what stops it alone."""
    now_ms = means.now()
    everyone = all_tables(means.everyone)
    with ThreadPoolExecutor(_THREADS) as pool:
        own = list(pool.map(_own_tables, sought))
    private = tuple(table for some in own if not isinstance(some, FirnlineError) for table in some)
    lake = TablesNow(tuple(everyone), asked, now_ms, private)
    return lake, [_made_ready(number, each, lake, own[number], means) for number, each in enumerate(sought)]


def _own_tables(sought: Sought) -> tuple[Neighbour, ...] | FirnlineError:
    try:
        return () if sought.own is None else tuple(all_tables(sought.own))
    except FirnlineError as problem:
        return problem


def _needs(tables: Sequence[Neighbour], now_ms: int) -> Iterator[tuple[Neighbour, File]]:
    return ((each, file) for each in tables for file in each.needs(now_ms))


def _made_ready(
    number: int, sought: Sought, lake: TablesNow, own: tuple[Neighbour, ...] | FirnlineError, means: Means
) -> _Ready | FirnlineError:
    if isinstance(own, FirnlineError):
        return own
    scope, tables = sought.scope, TablesOfSearch(lake, sought.scope, own)
    mine, beside = f"search {number}", f"beside search {number}"
    try:
        sort = means.make_sort(tables.rules(sought.formats))
        needed = [
            (each, Root(file, True, mine if each.state.uuid == scope.uuid else beside))
            for each, file in chain(_needs(own, lake.now_ms), tables.strangers.needs())
        ]
    except FirnlineError as problem:
        return problem
    private = frozenset({mine, beside}) if own else frozenset[str]()
    owners = frozenset({str(scope.uuid)}) | (private & {mine})
    return _Ready(sought, tables, sort, TableSearch(scope.folders, owners, sort, private), needed)
