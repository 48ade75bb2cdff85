"""Snapshots and the refs that name them, for every format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

SnapshotId = str
"""Ids are strings everywhere: Iceberg and Paimon print integers, Icechunk prints base 32."""

MAIN = "main"
_CHANGES = "+changes"
_NUMBERED = re.compile(r"(?:.+:)?(-?[0-9]+)(?:@.*)?", re.DOTALL)


def changes_of(snapshot: SnapshotId) -> str:
    """Returns the owner of what only readers of changes need of a snapshot."""
    return snapshot + _CHANGES


def snapshot_of(owner: str) -> SnapshotId:
    """Returns the snapshot that an owner of roots belongs to."""
    return owner.removesuffix(_CHANGES)


def number_of(snapshot: SnapshotId) -> int | None:
    """Returns the number of a snapshot; within its branch, where branches count on their own (`branch:number`, and
    `number@tag` where a number was given again). None where its id is no number.
    """
    match = _NUMBERED.fullmatch(snapshot)
    return int(match[1]) if match else None


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
