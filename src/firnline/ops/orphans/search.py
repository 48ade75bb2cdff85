"""Searching: the store is listed to its end first, and only then is it asked what anybody needs.

So a file that was committed while the listing ran is seen as needed, and one that was written later is not listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from firnline.errors import ObjectNotFound, RefusedForSafety
from firnline.journal.lease import LARGEST_SKEW_MS
from firnline.model.files import FileKind, Root, Tally
from firnline.model.locations import within
from firnline.model.times import format_duration
from firnline.ops.orphans.neighbours import Here, Needed, Neighbour, outermost, overlap
from firnline.ops.orphans.pieces import pieces_of
from firnline.ops.orphans.rules import Rules, SearchRequest
from firnline.ops.orphans.scope import Scope
from firnline.ops.orphans.strangers import Departed, refuse_strangers
from firnline.ops.orphans.tables_now import TablesNow, TablesOfSearch
from firnline.ops.table.listings import ListTables
from firnline.ports.engines import Census, Engine
from firnline.ports.formats import Formats
from firnline.ports.listings import LISTED_COLUMNS, ListRanges, ObjectClass, Sort

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Means:
    """What a search works with. None of it can write or delete.

    `server` is that of what is listed; `live` lists the store itself, where `ranges` are a written inventory; None
    where they list it already.
    """

    engine: Engine
    ranges: ListRanges
    everyone: ListTables
    make_sort: Callable[[Rules], Sort]
    formats: Formats
    now: Callable[[], int]
    server: str
    live: ListRanges | None = None

    @property
    def here(self) -> Here:
        return Here(self.formats.expand, self.server)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A census, how many tables of which catalogs it was held against, and those whose files it is about."""

    census: Census
    listed: Tally
    cutoff_ms: int
    tables: int
    catalogs: tuple[str, ...]
    insiders: tuple[Neighbour, ...] = field(repr=False)


def search(scope: Scope, asked: SearchRequest, means: Means) -> SearchResult:
    """Returns every object under the scope in its class. Raises, with nothing changed, where anything is doubtful."""
    pieces = pieces_of(dict.fromkeys(scope.folders, 1), means.engine, means.ranges)
    listing = means.engine.list(pieces, means.ranges)
    lake = TablesNow.read(means.everyone, asked, means.now())
    tables = TablesOfSearch(lake, scope)
    sort = means.make_sort(tables.rules(means.formats))
    needed = chain(needed_by(lake, tables.insiders), needed_by_strangers(lake))
    needs = lake.by_server(needed, means.here)
    census = means.engine.census(listing, needs, sort)
    return CountedSearch(tables, means.formats, sort, means.live, census).result()


@dataclass(frozen=True, slots=True)
class CountedSearch:
    """A search whose objects are counted, and of which it is still to be seen whether anything is doubtful."""

    tables: TablesOfSearch
    formats: Formats
    sort: Sort
    live: ListRanges | None
    census: Census

    def result(self) -> SearchResult:
        """Returns what was found. Raises where anything is doubtful."""
        census, scope, lake = self.census, self.tables.scope, self.tables.lake
        insiders = self.tables.insiders
        _refuse_other_clock(census.newest_ms, lake.now_ms)
        _refuse_nothing_of_theirs(scope, census, insiders)
        self._refuse_strangers()
        if not lake.asked.keep_near_misses:
            _refuse_near_misses(census)
        listed = sum(census.classes.values(), Tally())
        return SearchResult(census, listed, lake.cutoff_ms, len(self.tables), lake.catalogs, tuple(insiders))

    def _refuse_strangers(self) -> None:
        scope, lake = self.tables.scope, self.tables.lake
        gone, departed = lake.asked.gone, Departed(lake.now_ms)
        if scope.departed is not None:
            gone |= {scope.departed.uuid}
            departed.add(scope.departed, self.formats)
        for each in (lake.strangers, self.tables.strangers):
            each.refuse_outside(scope.folders)
        documents = chain(self.census.document_batches(), self._not_listed(), self._pointed())
        refuse_strangers(documents, self.tables.known, self.tables.forks(), gone, departed, self.formats)

    def _not_listed(self) -> Iterator[pa.RecordBatch]:
        """Yields the metadata in the folders of the searched tables that is none of theirs, as the store has it now.

        An inventory may be of the data alone, or older than the metadata by which another catalog needs that data.
        """
        if self.live is None:
            return
        for folder in outermost(_metadata_folders(self.tables.scope, self.tables.insiders)):
            for piece in self.live.split(folder, 1):
                yield from map(self._strange, self.live.batches(piece))

    def _pointed(self) -> Iterator[pa.RecordBatch]:
        """Yields the metadata that pointers name and that is none of a known table's log.

        It is needed, so no census shows it as a stranger's. But the pointer may be one of a table that nobody counted:
        of that, all but the snapshot that it leads to would go.
        """
        import pyarrow as pa

        named = [found for each, key in self.tables.pointed() for found in _listed(each, key)]
        if named:
            types = (pa.string(), pa.int64(), pa.int64(), pa.string())
            columns = [pa.array([row[at] for row in named], types[at]) for at in range(len(LISTED_COLUMNS))]
            yield self._strange(pa.record_batch(columns, names=list(LISTED_COLUMNS)))

    def _strange(self, listed: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the metadata among listed objects that no known table names."""
        import pyarrow as pa
        import pyarrow.compute as pc

        batch, theirs = self.sort(listed), pa.array(self.tables.known.every_file, pa.string())
        is_document = pc.fill_null(pc.equal(batch.column("kind"), FileKind.METADATA.value), False)
        return batch.filter(pc.and_not(is_document, pc.is_in(batch.column("identity"), value_set=theirs)))


def _metadata_folders(scope: Scope, insiders: Sequence[Neighbour]) -> Iterator[str]:
    """Yields where the writers of searched tables put metadata that a document of its own names as a whole."""
    places = (place for each in insiders if not each.unique_names for place in each.places)
    named = (place.folder for place in places if any(kind is FileKind.METADATA for _, kind in place.names))
    return (each for each in named if any(overlap(each, folder) for folder in scope.folders))


def needed_by(lake: TablesNow, insiders: Sequence[Neighbour]) -> Iterator[Needed]:
    """Yields what every table needs: a root of the searched tables is needed, that of any other is another's."""
    inside = {id(each) for each in insiders}
    return ((each, Root(file, id(each) in inside)) for each in lake.tables for file in each.needs(lake.now_ms))


def needed_by_strangers(lake: TablesNow) -> Iterator[Needed]:
    """Yields what pointers of tables that nobody counted lead to. Whether they may be there at all is asked later."""
    return ((each, Root(file, True)) for each, file in lake.strangers.needs())


def _listed(table: Neighbour, key: str) -> Iterator[tuple[str, int, int | None, str | None]]:
    """Yields an object as a listing would show it; nothing where it is gone."""
    with suppress(ObjectNotFound):
        found = table.work.store.head(key)
        yield key, found.size, found.modified_ms, found.etag


def _refuse_other_clock(newest_ms: int | None, now_ms: int) -> None:
    """Raises where the store has objects from the future: then this clock is behind, and no age is what it seems."""
    ahead = 0 if newest_ms is None else newest_ms - now_ms
    if ahead > LARGEST_SKEW_MS:
        raise RefusedForSafety(
            f"the store has objects that are {format_duration(ahead)} younger than this machine's clock",
            hint="set the clock; ages are judged by the store's",
        )


def _refuse_nothing_of_theirs(scope: Scope, census: Census, insiders: Sequence[Neighbour]) -> None:
    """Raises where a table's own metadata lies here and yet nothing that it needs was listed: a listing that failed
    without a word looks just so.
    """
    if census.classes.get(ObjectClass.NEEDED, Tally()).files:
        return
    for each in insiders:
        metadata = next(each.work.source.format.metadata_files(each.state))
        if any(within(folder, metadata) for folder in scope.folders):
            raise RefusedForSafety(
                f"the listing shows nothing that {each.state.table} needs, although its metadata is in that place",
                hint="look whether the store lists the folder; an inventory may be of another place or time",
            )


def _refuse_near_misses(census: Census) -> None:
    if not census.classes.get(ObjectClass.NEAR_MISS, Tally()).files:
        return
    shown = "; ".join(f"{listed} and {needed}" for listed, needed in census.near_misses[:_SHOWN])
    raise RefusedForSafety(
        f"what is listed and what is needed differ only in scheme, authority or encoding, or in their folder: {shown}",
        hint="if they are one, say --same LISTED=NEEDED (s3://a=s3://b); if not, --near-misses keep leaves them alone",
    )
