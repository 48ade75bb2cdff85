"""Streaming readers: programs that go on, after any pause, from the snapshot that they stood at."""

from __future__ import annotations

from dataclasses import dataclass

from firnline.model.snapshots import SnapshotId


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """Where one source of a stream stands; `snapshot` None where its table had no snapshot yet."""

    snapshot: SnapshotId | None


@dataclass(frozen=True, slots=True)
class StreamReader:
    """One source of a stream, as its checkpoint tells.

    `at` is where it goes on from, `began` where it once started; None where the table had no snapshot then.
    `moved_ms` is when its checkpoint was last written, by the store's clock; None where the store does not tell.
    """

    checkpoint: str
    source: int
    at: SnapshotId | None
    began: SnapshotId | None
    moved_ms: int | None
