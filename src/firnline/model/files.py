"""Files (objects that a snapshot needs), units (files that the walk opens) and their totals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class FileKind(StrEnum):
    """What a file is to its table. The value is part of the JSON output."""

    DATA = "data"
    CHUNK = "chunk"
    POSITION_DELETES = "position-deletes"
    EQUALITY_DELETES = "equality-deletes"
    DELETION_VECTORS = "deletion-vectors"
    CHANGELOG = "changelog"
    INDEX = "index"
    MANIFEST = "manifest"
    SNAPSHOT = "snapshot"
    TRANSACTION_LOG = "transaction-log"
    MANIFEST_LIST = "manifest-list"
    CHANGES_LIST = "manifest-list-of-changes"
    INDEX_MANIFEST = "index-manifest"
    STATISTICS = "statistics"
    PARTITION_STATISTICS = "partition-statistics"
    METADATA = "metadata"
    BACKUP = "backup"
    UNFINISHED = "unfinished"
    VIRTUAL = "virtual"
    """Bytes of a file that another table may own, as far as anybody can tell: they are needed, and never go with what
    needs them. Of several kinds that are told of one file this is the last one that counts.
    """


@dataclass(frozen=True, slots=True)
class File:
    """One object that a snapshot needs. Equal identities are one object; `key` is the spelling a delete would name.

    A unit is a file that the walk opens, because it names further files. `size` is None where only opening it tells.
    `expects` is what the table says is below a unit, in a code of the format's own, None where it does not say: a unit
    that tells of less may have been cut short.
    """

    kind: FileKind
    key: str
    size: int | None = None
    opens: bool = False
    expects: int | None = None


@dataclass(frozen=True, slots=True)
class Root:
    """Where the walk starts, and whether a kept snapshot needs it.

    `owner` is the snapshot, where a format's manifests also take away: what one of them removes, it removes for the
    snapshots that read it and for no other.
    """

    file: File
    needed: bool
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Tally:
    """A number of files and their bytes."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.files + other.files, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class Totals:
    """Tallies by kind of file."""

    by_kind: Mapping[FileKind, Tally] = field(default_factory=dict)

    @property
    def all(self) -> Tally:
        return sum(self.by_kind.values(), Tally())

    @staticmethod
    def of(rows: Iterable[tuple[FileKind, Tally]]) -> Totals:
        """Returns the sum of the rows, kind by kind, in the order the kinds are declared."""
        sums: dict[FileKind, Tally] = {}
        for kind, tally in rows:
            sums[kind] = sums.get(kind, Tally()) + tally
        return Totals({kind: sums[kind] for kind in FileKind if kind in sums})
