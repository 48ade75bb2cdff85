"""Snapshots and the refs that name them, for every format."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SnapshotId = str
"""Ids are strings everywhere: Iceberg and Paimon print integers, Icechunk prints base 32."""

MAIN = "main"
_CHANGES = "+changes"


def changes_of(snapshot: SnapshotId) -> str:
    """Returns the owner of what only readers of changes need of a snapshot."""
    return snapshot + _CHANGES


def snapshot_of(owner: str) -> SnapshotId:
    """Returns the snapshot that an owner of roots belongs to."""
    return owner.removesuffix(_CHANGES)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of a table.

    `number` is its place in the range that its branch keeps, where the format has one; None also for a version that is
    in no range any more and only a tag holds.
    """

    id: SnapshotId
    parent: SnapshotId | None
    timestamp_ms: int
    operation: str | None = None
    number: int | None = None


class RefKind(StrEnum):
    BRANCH = "branch"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class Ref:
    """A branch or tag, with the retention that it carries itself (None: the table's default counts)."""

    name: str
    kind: RefKind
    snapshot: SnapshotId
    max_ref_age_ms: int | None = None
    max_snapshot_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None
