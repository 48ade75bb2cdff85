"""Commits in the past: the caller sets the clock that PyIceberg stamps snapshots and logs with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from unittest.mock import patch


class SetClock:
    """Stands where it was set and moves one millisecond with every look, so that order is strict."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def time(self) -> float:
        """Seconds since the epoch; the half millisecond keeps a truncation on this side of the tick."""
        self.now_ms += 1
        return (self.now_ms + 0.5) / 1000

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.time(), UTC)


@contextmanager
def pyiceberg_clock(clock: SetClock) -> Iterator[SetClock]:
    """Every commit inside the block carries this clock's time; set clock.now_ms to move it."""
    with (
        patch("pyiceberg.table.snapshots.time", clock),
        patch("pyiceberg.table.update.datetime", clock),
        patch("pyiceberg.table.metadata.datetime", SimpleNamespace(datetime=clock)),
    ):
        yield clock


@contextmanager
def shared_entries() -> Iterator[None]:
    """Lets copies of a table's metadata share their snapshots and logs, which are frozen models anyway.

    PyIceberg copies all of it about twenty times per commit: most of the time that a long history takes.
    """
    with ExitStack() as patches:
        for model in ("snapshots.Snapshot", "snapshots.SnapshotLogEntry", "snapshots.MetadataLogEntry"):
            patches.enter_context(patch(f"pyiceberg.table.{model}.__deepcopy__", lambda entry, _: entry))
        yield
