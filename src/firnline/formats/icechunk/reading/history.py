"""A snapshot's place in the history of its repository."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HistorySnapshot:
    """A snapshot with its parent, and what its writer said of it.

    `pruned` are snapshots that an expiry took out between this one and its parent: their transaction logs are needed
    to tell what this one changed.
    """

    id: str
    parent: str | None
    flushed_us: int
    message: str
    pruned: tuple[str, ...] = ()
