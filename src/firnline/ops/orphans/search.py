"""Searching: the store is listed to its end first, and only then is it asked what anybody needs.

So a file that was committed while the listing ran is seen as needed, and one that was written later is not listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from firnline.errors import RefusedForSafety
from firnline.journal.lease import LARGEST_SKEW_MS
from firnline.model.files import FileKind, Root, Tally
from firnline.model.locations import join, known_as, within
from firnline.model.times import DAY_MS, format_duration
from firnline.ops.orphans.forks import Forks
from firnline.ops.orphans.neighbours import Neighbour, all_tables, expand_of, outermost, overlap
from firnline.ops.orphans.scope import Scope
from firnline.ops.orphans.strangers import Departed, Known, refuse_strangers
from firnline.ops.table.context import ListTables
from firnline.ports.engines import Census, Engine, Listing
from firnline.ports.formats import Formats
from firnline.ports.listings import ListRanges, ObjectClass, Sort, WrittenFolder

if TYPE_CHECKING:
    import pyarrow as pa

FLOOR_MS = DAY_MS
"""Never is anything younger than this taken for garbage: a writer may still be about to commit it."""
DEFAULT_AGE_MS = 3 * DAY_MS
_PIECES = {"local": 16}
_MOST_PIECES = 128
"""Cutting a bucket costs a few requests for each piece: more than threads or tasks can read at once are a waste."""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """The options of a search. `same` are stems that are one; `dead` are uuids of tables that are known to be gone, and
    locations of metadata that nobody has any more; `also` locations of tables that no catalog has.
    """

    older_than_ms: int | None = None
    same: tuple[tuple[str, str], ...] = ()
    dead: frozenset[str] = frozenset()
    also: tuple[str, ...] = ()
    keep_near_misses: bool = False

    @property
    def gone(self) -> frozenset[str]:
        """Those that need nothing: tables by their uuid, metadata by its identity."""
        return self.dead | {known_as(each, self.same) for each in self.dead if "/" in each}

    def cutoff_ms(self, now_ms: int) -> int:
        """Returns what a file must be older than; the floor holds whatever was asked for."""
        asked = now_ms - DEFAULT_AGE_MS if self.older_than_ms is None else self.older_than_ms
        return min(asked, now_ms - FLOOR_MS)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a sort is made from: see `ports.listings.Sort`."""

    cutoff_ms: int
    places: tuple[WrittenFolder, ...]
    others: tuple[str, ...]
    own: tuple[str, ...]
    same: tuple[tuple[str, str], ...]
    by_name: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Means:
    """What a search works with. None of it can write or delete.

    `live` lists the store itself, where `ranges` are a written inventory; None where they list it already.
    """

    engine: Engine
    ranges: ListRanges
    everyone: ListTables
    make_sort: Callable[[Rules], Sort]
    formats: Formats
    now: Callable[[], int]
    live: ListRanges | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A census, and the tables that it was held against."""

    census: Census
    listed: Tally
    cutoff_ms: int
    tables: tuple[Neighbour, ...] = field(repr=False)
    insiders: tuple[Neighbour, ...] = field(repr=False)


def search(scope: Scope, asked: SearchRequest, means: Means) -> SearchResult:
    """Returns every object under the scope in its class. Raises, with nothing changed, where anything is doubtful."""
    listing = _listed(scope, means)
    now_ms = means.now()
    _refuse_other_clock(listing, now_ms)
    neighbours = all_tables(means.everyone)
    insiders = scope.insiders(neighbours, now_ms)
    sort = means.make_sort(_rules(scope, asked, means, neighbours, insiders, now_ms))
    census = means.engine.census(
        listing,
        roots_of(neighbours, insiders, now_ms),
        expand_of(neighbours, means.formats.expand),
        sort,
    )
    _refuse_nothing_of_theirs(scope, census, insiders)
    gone, departed = asked.gone, Departed(now_ms)
    if scope.departed is not None:
        gone |= {scope.departed.uuid}
        departed.add(scope.departed, means.formats)
    known = Known.of(neighbours, asked.same, asked.cutoff_ms(now_ms))
    forks = Forks.of(neighbours, asked.same, asked.cutoff_ms(now_ms))
    documents = chain(census.document_batches(), _not_listed(scope, means, insiders, known, sort))
    refuse_strangers(documents, known, forks, gone, departed, means.formats)
    if not asked.keep_near_misses:
        _refuse_near_misses(census)
    return SearchResult(census, listing.all, asked.cutoff_ms(now_ms), tuple(neighbours), tuple(insiders))


def _not_listed(
    scope: Scope, means: Means, insiders: Sequence[Neighbour], known: Known, sort: Sort
) -> Iterator[pa.RecordBatch]:
    """Yields the metadata in the folders of the searched tables that is none of theirs, as the store has it now.

    An inventory may be of the data alone, or older than the metadata by which another catalog needs that data.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if means.live is None:
        return
    theirs = pa.array(sorted(set().union(*known.files.values())), pa.string())
    for folder in outermost(_metadata_folders(scope, insiders)):
        for piece in means.live.split(folder, 1):
            for batch in map(sort, means.live.batches(piece)):
                is_document = pc.fill_null(pc.equal(batch.column("kind"), FileKind.METADATA.value), False)
                yield batch.filter(pc.and_not(is_document, pc.is_in(batch.column("identity"), value_set=theirs)))


def _metadata_folders(scope: Scope, insiders: Sequence[Neighbour]) -> Iterator[str]:
    """Yields where the writers of searched tables put metadata that a document of its own names as a whole."""
    places = (place for each in insiders if not each.unique_names for place in each.places)
    named = (place.folder for place in places if any(kind is FileKind.METADATA for _, kind in place.names))
    return (each for each in named if any(overlap(each, folder) for folder in scope.folders))


def _listed(scope: Scope, means: Means) -> Listing:
    wanted = _PIECES.get(means.engine.name, _MOST_PIECES)
    pieces = [piece for folder in scope.folders for piece in means.ranges.split(folder, wanted)]
    return means.engine.list(pieces, means.ranges)


def roots_of(neighbours: Sequence[Neighbour], insiders: Sequence[Neighbour], now_ms: int) -> Iterator[Root]:
    """Yields what every table needs: a root of the searched tables is needed, that of any other is another's."""
    inside = {id(each) for each in insiders}
    return (Root(file, needed=id(each) in inside) for each in neighbours for file in each.needs(now_ms))


def _rules(
    scope: Scope,
    asked: SearchRequest,
    means: Means,
    neighbours: Sequence[Neighbour],
    insiders: Sequence[Neighbour],
    now_ms: int,
) -> Rules:
    departed = () if scope.departed is None else means.formats.of(scope.departed).places(scope.departed)
    places = scope.places(insiders, departed)
    foreign = scope.foreign(neighbours, insiders, places, now_ms)
    records = {folder for each in neighbours for folder in each.work.own_folders(each.state)}
    records |= {join(each, "_firnline") for each in scope.folders}
    by_name = {folder for each in neighbours if each.unique_names for folder in each.state.owned}
    return Rules(asked.cutoff_ms(now_ms), places, foreign, tuple(sorted(records)), asked.same, tuple(sorted(by_name)))


def _refuse_other_clock(listing: Listing, now_ms: int) -> None:
    """Raises where the store has objects from the future: then this clock is behind, and no age is what it seems."""
    ahead = 0 if listing.newest_ms is None else listing.newest_ms - now_ms
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
