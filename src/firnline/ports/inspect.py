"""A table's own metadata as rows: what the SQL tables `manifests`, `entries`, `files` and `history` are made of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from firnline.model.snapshots import SnapshotId
from firnline.ports.formats import State

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Manifest:
    """One manifest of a snapshot, with what its entries inherit from it. `first_row` is the id of the first of its
    rows, where a format counts them.
    """

    key: str
    size: int
    spec: int
    snapshot: int | None
    sequence: int
    first_row: int | None = None


class EntryReader(Protocol):
    """Reads manifests on an executor: small, picklable, no session."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of an entry: what happened to a file, in which snapshot, and the file as one struct; more where a
        format tells more.
        """
        ...

    def __call__(self, manifest: Manifest, wanted: Collection[str] | None = None) -> pa.RecordBatch:
        """Returns every entry of a manifest, also those that say 'deleted'. Raises UnreadableMetadata.

        `wanted` are the columns that count, of the file `data_file.PART`; all if None. What is not wanted may be left
        out, and need not be.
        """
        ...


class Inspect(Protocol):
    """What a format tells of its own metadata."""

    def log(self, state: State) -> Iterator[tuple[int, SnapshotId]]:
        """Yields when which snapshot became the current one, oldest first."""
        ...

    def manifests(self, state: State, snapshot: SnapshotId | None) -> pa.Table:
        """Returns the manifests of a snapshot, one row each; of none an empty table."""
        ...

    def units(self, state: State, snapshot: SnapshotId | None) -> list[Manifest]:
        """Returns the same manifests as pieces of work."""
        ...

    def entries(self, state: State) -> EntryReader: ...

    def live(self, state: State, snapshot: SnapshotId | None) -> EntryReader:
        """Returns a reader of the snapshot's manifests without the entries that one of them takes away from another."""
        ...


def latest_at(log: Iterable[tuple[int, SnapshotId]], at_ms: int) -> SnapshotId | None:
    """Returns the snapshot that was the current one at an instant, by what a table tells in `log`; None if it tells of
    none. Iceberg's engines go by this.
    """
    found = None
    for when, snapshot in log:
        found = snapshot if when <= at_ms else found
    return found


@runtime_checkable
class HasMetadataLog(Protocol):
    """A format whose tables tell their earlier metadata files."""

    def metadata_log(self, state: State) -> pa.Table:
        """Returns a row for each metadata file of the table's log and for the present one, oldest first."""
        ...


Task = Any
"""What is read at once: small and picklable; only its own Rows look inside."""


class Rows(Protocol):
    """The rows of one snapshot. Picklable: it travels to executors with the means to read its tasks."""

    @property
    def schema(self) -> pa.Schema: ...

    def tasks(self) -> Sequence[Task]:
        """Returns all that is to be read, in pieces of about equal bytes. Raises UnsupportedFormat where that cannot be
        read without an engine of the format's own.
        """
        ...

    def read(self, task: Task, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a task, with these columns in this order."""
        ...


@dataclass(frozen=True, slots=True)
class SparkSource:
    """How Spark reads a snapshot with a format's own jar: the name of the source, its options, and what it loads."""

    name: str
    load: str
    options: Mapping[str, str] = field(default_factory=dict)
