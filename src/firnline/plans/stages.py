"""The stages of a run, in order. `explain` and the run itself read this one list, so neither can drift."""

from __future__ import annotations

from dataclasses import dataclass

from firnline.model.files import Tally
from firnline.model.snapshots import SnapshotId
from firnline.ports.formats import UndoWindow


@dataclass(frozen=True, slots=True)
class CommitExpiry:
    """Remove these snapshots and refs from the table's metadata, by one compare-and-swap.

    `final`: the table's catalog takes nothing back, so that the time to undo lies before. `history_ms`: for how long
    the table remembers the snapshots, None where it does not.
    """

    snapshots: tuple[SnapshotId, ...]
    refs: tuple[str, ...]
    final: bool = False
    history_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AwaitUndo:
    """Change nothing for this long, so that the run can be called off."""

    grace_ms: int


@dataclass(frozen=True, slots=True)
class AwaitGrace:
    """Leave every byte in place this long, so that readers finish and, where `undo`, the commit can be undone."""

    grace_ms: int
    undo: bool = True


@dataclass(frozen=True, slots=True)
class PurgeVictims:
    """Delete from the written list of victims, batch by batch, each checked again first."""

    victims: Tally


Stage = AwaitUndo | CommitExpiry | AwaitGrace | PurgeVictims


def stages_of(
    expire: tuple[SnapshotId, ...],
    refs: tuple[str, ...],
    grace_ms: int,
    victims: Tally,
    undo: UndoWindow,
    history_ms: int | None = None,
) -> tuple[Stage, ...]:
    """Returns what a run would do; nothing at all where nothing expires."""
    if not expire and not refs:
        return ()
    if undo is UndoWindow.AFTER_COMMIT:
        return (CommitExpiry(expire, refs, history_ms=history_ms), AwaitGrace(grace_ms), PurgeVictims(victims))
    commit = CommitExpiry(expire, refs, final=True, history_ms=history_ms)
    after = (commit, AwaitGrace(grace_ms, undo=False), PurgeVictims(victims))
    return (AwaitUndo(grace_ms), *after) if undo is UndoWindow.BEFORE_COMMIT else after
