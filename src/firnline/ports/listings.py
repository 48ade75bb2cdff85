"""What a store holds, and which class each object belongs to: the ground of every search for orphans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from firnline.model.files import FileKind

if TYPE_CHECKING:
    import pyarrow as pa

LISTED_COLUMNS = ("key", "size", "modified_ms", "etag")
"""One row per object. `modified_ms` is the store's clock and null where it does not tell, as is `etag`."""


class ObjectClass(StrEnum):
    """What a listed object is to the search. The value is part of the JSON output; only VICTIM may go."""

    NEEDED = "needed"
    ANOTHER_TABLE = "another-table"
    OWN_RECORDS = "own-records"
    YOUNG = "young"
    UNKNOWN_AGE = "unknown-age"
    UNKNOWN_KIND = "unknown-kind"
    OUTSIDE = "outside"
    NEAR_MISS = "near-miss"
    VICTIM = "victim"


@dataclass(frozen=True, slots=True)
class WrittenFolder:
    """A folder that a table writes to, and the names that its writers give: (expression, kind), first match wins.

    Without names it is a folder that the table owns and its writers do not use: what is there belongs to others.
    `whole`: an expression is for all of the path below the folder, and not only for its last part. `cutoff_ms`: what is
    younger stays, where that is older than the search's own cutoff.
    """

    folder: str
    names: tuple[tuple[str, FileKind], ...]
    whole: bool = False
    cutoff_ms: int | None = None


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A piece of a listing that one task reads: what is under `folder`, or only directly in it where not `deep`.

    Where bounds are given, only keys with `after` < key ≤ `until` belong to it, in the order of their bytes. `block`
    is the part of a written inventory that holds the piece.
    """

    folder: str
    deep: bool = True
    after: str | None = None
    until: str | None = None
    block: int | None = None


class ListRanges(Protocol):
    """Reads a store in pieces. Picklable, because executors read them; may also stand for a written inventory."""

    def split(self, prefix: str, wanted: int) -> Sequence[KeyRange]:
        """Returns pieces that together are exactly what is under `prefix`, about `wanted` of them where it can."""
        ...

    def batches(self, piece: KeyRange) -> Iterator[pa.RecordBatch]:
        """Yields the objects of a piece as batches of LISTED_COLUMNS. A failure raises and is never an early end."""
        ...


class Sort(Protocol):
    """Tells from its name, place and age what an object is that nothing names. Picklable."""

    def __call__(self, listed: pa.RecordBatch) -> pa.RecordBatch:
        """Returns SORTED_COLUMNS, row by row: the class that an object has if no root reaches it, and its kind.

        `identity` is what roots are compared by; `path` is the same without scheme and authority, percent-decoded:
        where only that is equal, nobody can tell whether two names are one object.
        """
        ...

    def identities(self, keys: pa.Array) -> pa.Array:
        """Returns the identity of each listed key: where it lies, whatever the operator knows it as."""
        ...

    def names(self, identities: pa.Array) -> pa.Array:
        """Returns each identity as it is compared, `identity` in SORTED_COLUMNS: the operator may know two as one."""
        ...

    def paths(self, identities: pa.Array) -> pa.Array:
        """Returns the `path` of each identity, as it is in SORTED_COLUMNS: what roots reach is compared by it too."""
        ...


SORTED_COLUMNS = (*LISTED_COLUMNS, "identity", "path", "class", "kind")
VICTIM_COLUMNS = ("identity", "key", "size", "kind", "modified_ms", "etag")
