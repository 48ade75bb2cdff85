"""The stages of a run, in order. `explain` and the run itself read this one list, so neither can drift."""

from __future__ import annotations

from dataclasses import dataclass

from firnline.model.files import Tally
from firnline.model.snapshots import SnapshotId


@dataclass(frozen=True, slots=True)
class CommitExpiry:
    """Remove these snapshots and refs from the table's metadata, by one compare-and-swap."""

    snapshots: tuple[SnapshotId, ...]
    refs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AwaitGrace:
    """Leave every byte in place this long, so that readers finish and `undo` works."""

    grace_ms: int


@dataclass(frozen=True, slots=True)
class PurgeVictims:
    """Delete from the written list of victims, batch by batch, each checked again first."""

    victims: Tally


Stage = CommitExpiry | AwaitGrace | PurgeVictims


def stages_of(
    expire: tuple[SnapshotId, ...], refs: tuple[str, ...], grace_ms: int, victims: Tally
) -> tuple[Stage, ...]:
    """Returns what a run would do; nothing at all where nothing expires."""
    if not expire and not refs:
        return ()
    return (CommitExpiry(expire, refs), AwaitGrace(grace_ms), PurgeVictims(victims))
