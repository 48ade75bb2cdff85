"""Walking and judging files at any scale. `local` and `spark` implement this and pass one suite."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from firnline.errors import FirnlineError
from firnline.model.files import FileKind, Root, Tally, Totals
from firnline.model.locations import identity, stem_of
from firnline.ports.expanding import Expand
from firnline.ports.listings import KeyRange, ListRanges, ObjectClass, Sort
from firnline.ports.stores import AS_CALLED, Head, RealNames

if TYPE_CHECKING:
    import pyarrow as pa

    from firnline.ports.formats import State, TableFormat


FILE_COLUMNS = ("identity", "key", "size", "kind")
FAULT_COLUMNS = ("key", "kind", "size", "found")
REACHED_COLUMNS = ("identity", "walk", "by_name")

OUTSIDE = "outside-location"
NEAR_MISS = "near-miss"
ELSEWHERE = "needed-elsewhere"
SPARED_REASONS = {
    OUTSIDE: "lies outside the table's own folders",
    NEAR_MISS: "has the path of a needed file under another scheme or authority",
    ELSEWHERE: "is needed by another table",
}


@dataclass(frozen=True, slots=True)
class Territory:
    """Which victims may go: those under `owned`, but none under `holes`, which are folders of other tables.

    None owns everything but the holes (the operator said so). `real` tells what files are really called: what is needed
    by one path does not go by another, and what only seems to lie there does not go at all.
    """

    owned: tuple[str, ...] | None
    holes: tuple[str, ...] = ()
    real: RealNames = AS_CALLED

    @property
    def inside(self) -> tuple[str, ...] | None:
        """What the identities of victims begin with; None if they may begin with anything."""
        return None if self.owned is None else tuple(map(stem_of, self.owned))

    @property
    def outside(self) -> tuple[str, ...]:
        """What no victim's identity begins with."""
        return tuple(map(stem_of, self.holes))


@dataclass(frozen=True, slots=True)
class ServerRoots:
    """What tables of one server need: where a walk of it starts, and how units are opened there. `server` tells apart
    stores that may call different objects alike: what is on two of them shares no unit.
    """

    roots: Sequence[Root]
    expand: Expand
    server: str = ""


@dataclass(frozen=True, slots=True)
class TableWalk:
    """What an engine is asked of one table: where to start, how its units are opened, which victims may go, and what
    other tables need: nothing of that may go. `entries` is about how many files it has, 0 where nothing tells: it only
    spreads the work. `server` is where it is. `elsewhere` is in one part for each server, and says whose each root is.
    """

    roots: Sequence[Root]
    expand: Expand
    territory: Territory
    elsewhere: Sequence[ServerRoots] = ()
    entries: int = 0
    server: str = ""


@dataclass(frozen=True, slots=True)
class TableSearch:
    """What a census of several tables is asked of one: which folders of the listing it is about, whose roots are its
    own, and what an object there is that nothing names. All sorts of one census call objects alike.

    `private` are owners whose roots count here, and in no search that does not name them too.
    """

    folders: tuple[str, ...]
    owners: frozenset[str]
    sort: Sort
    private: frozenset[str] = frozenset()


def root_columns(roots: Iterable[Root]) -> dict[str, list[object]]:
    """Returns the roots as columns, one row each: what every engine starts its walk from."""
    rows = list(roots)
    return {
        "identity": [identity(root.file.key) for root in rows],
        "key": [root.file.key for root in rows],
        "size": [root.file.size for root in rows],
        "kind": [root.file.kind.value for root in rows],
        "opens": [root.file.opens for root in rows],
        "needed": [root.needed for root in rows],
        "expects": [root.file.expects for root in rows],
    }


def root_numbers(roots: Iterable[Root]) -> tuple[dict[str, int], int]:
    """Returns a number for each owner of roots, those of kept snapshots first, and how many these are.

    Owners that stand in a row share most of their manifests: their numbers make few spans. One that has a root which
    is needed counts as kept with all of them.
    """
    kept: dict[str, bool] = {}
    for root in roots:
        kept[root.owner] = kept.get(root.owner, False) or root.needed
    ordered = [*(owner for owner in kept if kept[owner]), *(owner for owner in kept if not kept[owner])]
    return {owner: number for number, owner in enumerate(ordered)}, sum(kept.values())


ChooseEngine = Callable[["State", "TableFormat", str], "Engine"]
"""Takes the table and the engine that its policy names; one that the operator asks for outright comes first."""


class Survey(Protocol):
    """What a walk found. Lives on the engine: only totals and one batch at a time reach the caller."""

    @property
    def kept(self) -> Totals: ...

    @property
    def victims(self) -> Totals: ...

    @property
    def spared(self) -> dict[str, Tally]:
        """What no kept snapshot needs and yet stays, by reason."""
        ...

    @property
    def units_opened(self) -> int: ...

    @property
    def unsized(self) -> int:
        """How many victims there are of which nothing that was read says a size."""
        ...

    def victim_batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the victims as batches of FILE_COLUMNS, each a bounded number of rows, sorted by nothing."""
        ...

    def kept_batches(self, kinds: Collection[FileKind] = tuple(FileKind)) -> Iterator[pa.RecordBatch]:
        """Yields the needed files the same way, or those of some kinds: a few units do not travel with all files."""
        ...

    def close(self) -> None:
        """Gives back what the engine holds for this survey."""
        ...


class ListingTooLarge(Exception):
    """More was listed than one machine should hold. Who chose the engine chooses one that spreads it."""


class Listing(Protocol):
    """What was listed. Lives on the engine; it is complete before anybody looks at what is needed."""

    @property
    def all(self) -> Tally: ...

    def close(self) -> None: ...


class Census(Protocol):
    """A listing held against everything that is needed: each object in exactly one class."""

    @property
    def classes(self) -> Mapping[ObjectClass, Tally]:
        """Tallies that add up to the listing."""
        ...

    @property
    def newest_ms(self) -> int | None:
        """The newest time that the store gave any of the objects; None where it gave none."""
        ...

    @property
    def victims(self) -> Totals: ...

    @property
    def near_misses(self) -> Sequence[tuple[str, str]]:
        """A few pairs (listed key, needed key) that differ by scheme, authority or encoding alone."""
        ...

    @property
    def units_opened(self) -> int: ...

    def victim_batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the victims as batches of VICTIM_COLUMNS, each a bounded number of rows, sorted by nothing."""
        ...

    def document_batches(self) -> Iterator[pa.RecordBatch]:
        """Yields what looks like a table's metadata and no root reaches, whatever its class, as VICTIM_COLUMNS. By its
        name, as far as a job or this process holds at a time: so the same one stops a search each time.
        """
        ...

    def unit_batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the units that were opened, as batches of FILE_COLUMNS: a purge need not open them again."""
        ...

    def close(self) -> None: ...


class ReachedFiles(Protocol):
    """What walks reached, one after the other. Lives on the engine: the caller asks for few files at a time, by their
    names, and holds none of the others.
    """

    def add(self, survey: Survey, walk: int, *, by_name: bool = False) -> None:
        """Remembers the needed files of a survey of this engine, which may be closed then. `walk` is the number of the
        walk, larger than those before; `by_name`: its files are found by their last names too.
        """
        ...

    def find(self, paths: Collection[str], names: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Yields the files with one of these bare paths, as batches of REACHED_COLUMNS; and those that are local, or
        were reached by name, and whose path ends with one of these names.

        Each has the number of the first walk that reached it in one of its rows. Others may be among them, since only
        marks are compared: the caller compares names.
        """
        ...


class Engine(Protocol):
    @property
    def name(self) -> str: ...

    def survey(
        self, roots: Iterable[Root], expand: Expand, territory: Territory, elsewhere: Sequence[ServerRoots] = ()
    ) -> Survey:
        """Walks from the roots, opens each unit once and judges every file by reachability.

        A file is a victim when some root that is not needed reaches it, no needed root does, and nothing elsewhere
        reaches its path. Raises UnreadableMetadata, naming the unit, as soon as any unit cannot be read, also one of
        another table: nothing is assumed about it.
        """
        ...

    def surveys(self, walks: Sequence[TableWalk]) -> Sequence[Survey | FirnlineError]:
        """Returns what `survey` would of each table, walked together: a unit that several tables share is opened once.

        A table that cannot be judged answers with what `survey` would raise, and stops no other. All of them are held
        until each is closed: the caller bounds how many it asks for.
        """
        ...

    def faults(self, survey: Survey, store: Head, listed: Listing | None = None) -> Iterator[pa.RecordBatch]:
        """Asks the store for every needed file of a survey of this engine, where the engine works; but for none that a
        listing of this engine has by the same key and with the size that its table says: a page of a listing costs a
        request, and tells of a thousand files.

        Yields those that are missing or have another size than their table says, as batches of FAULT_COLUMNS, each a
        bounded number of rows, sorted by nothing; `found` is null if nothing is there. Raises StoreError if one cannot
        be asked for: what is not known is not taken for sound.
        """
        ...

    def reached(self, *, everywhere: bool = False, real: RealNames = AS_CALLED) -> ReachedFiles:
        """Returns a memory of what walks of this engine reach, empty as yet; it lasts as long as it is held. Files are
        found by the paths that they have by `real`. `everywhere`: all are found by their last names too, not only local
        ones.
        """
        ...

    def list(self, pieces: Iterable[KeyRange], source: ListRanges) -> Listing:
        """Lists every piece to its end. Raises StoreError where any piece fails: a short listing is no listing.

        Raises ListingTooLarge where the engine was given a limit and meets it.
        """
        ...

    def census(self, listing: Listing, needs: Sequence[ServerRoots], sort: Sort) -> Census:
        """Walks from the roots, each on its own server, and puts every listed object into its class.

        Reached from a needed root: NEEDED; from another root: ANOTHER_TABLE. What no root reaches is what `sort`
        says, except that a victim whose path equals that of anything reached is a NEAR_MISS. Raises
        UnreadableMetadata, naming the unit, where anything cannot be opened, and StoreError where the listing names
        one object twice: two rows that look alike are two objects, and nobody could tell which of them is needed.
        """
        ...

    def censuses(
        self, listing: Listing, searches: Sequence[TableSearch], needs: Sequence[ServerRoots]
    ) -> Iterator[Census | FirnlineError]:
        """Yields what `census` would answer or raise for each search: of the part of the listing that lies in its
        folders, where the roots of its owners are those that are needed, and those that are private to other searches
        are left out. What lies in the folders of two is in both.

        All roots are walked once, also those of owners that no search has, and each unit of a server is opened once.
        Raises UnreadableMetadata where anything cannot be opened, for all of them: it may need any file of any table.
        What is private stops those searches alone that it counts for. A census is made when it is asked for, so that
        who is done with one before the next holds one at a time.
        """
        ...
