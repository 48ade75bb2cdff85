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
    the table remembers the snapshots, None where it does not. `beside` counts what else goes.
    """

    snapshots: tuple[SnapshotId, ...]
    refs: tuple[str, ...]
    final: bool = False
    history_ms: int | None = None
    beside: int = 0


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
    beside: int = 0,
) -> tuple[Stage, ...]:
    """Returns what a run would do; nothing at all where nothing expires."""
    if not expire and not refs and not beside:
        return ()
    commit = CommitExpiry(expire, refs, final=undo is not UndoWindow.AFTER_COMMIT, history_ms=history_ms, beside=beside)
    if undo is UndoWindow.AFTER_COMMIT:
        return (commit, AwaitGrace(grace_ms), PurgeVictims(victims))
    after = (commit, AwaitGrace(grace_ms, undo=False), PurgeVictims(victims))
    return (AwaitUndo(grace_ms), *after) if undo is UndoWindow.BEFORE_COMMIT else after
