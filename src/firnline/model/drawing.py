"""A history as it is drawn: what follows what before a run and after it, and what becomes of each snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from firnline.model.snapshots import SnapshotId


class SnapshotFate(StrEnum):
    """What becomes of a snapshot."""

    STAYS = "stays"
    FOLLOWS_ROOT = "follows the root"
    HELD = "held"
    """Expired by the policy, and a ref leads to it."""
    GOES = "goes"
    UNREFERENCED = "unreferenced"
    """No ref led to it before either: an expiry does not decide about it, a collection does."""


@dataclass(frozen=True, slots=True)
class DrawnSnapshot:
    """One snapshot, and the one that it is drawn under; None for the first of a history."""

    id: SnapshotId
    parent: SnapshotId | None
    timestamp_ms: int
    fate: SnapshotFate


@dataclass(frozen=True, slots=True)
class HistoryDrawing:
    """A history before and after, the oldest first. `gone` says of those that are missing afterwards what they are."""

    before: tuple[DrawnSnapshot, ...]
    after: tuple[DrawnSnapshot, ...]
    gone: str
