"""Repositories whose snapshots say other times than their writer's clock did, or whose store does."""

from __future__ import annotations

import random
import struct
from pathlib import Path

from firnline.formats.icechunk.reading.repository import IcechunkRepository, read_repository
from firnline.testing.dated import date

from .growing import Growing, made, storage
from .repositories import STORE, body_of, packed

MINUTE_US = 60_000_000
HOUR_US, DAY_US = 60 * MINUTE_US, 24 * 60 * MINUTE_US


def line_of(folder: Path, commits: int, spec: int = 1) -> Growing:
    """Returns a repository of one branch."""
    world = Growing(made(storage(folder), spec), random.Random(5), spec)
    while len(world.written) < commits:
        world.commit()
    return world


def read(folder: Path) -> IcechunkRepository:
    return read_repository(STORE, str(folder))


def dated(folder: Path, snapshot: str, us: int) -> None:
    """Has the store say that a snapshot was written at this time."""
    date(folder / "snapshots" / snapshot, us / 1000)


def dated_as_they_say(folder: Path) -> None:
    for each in read(folder).snapshots.values():
        dated(folder, each.id, each.flushed_us)


def redated(folder: Path, snapshot: str, us: int) -> None:
    """Has a snapshot say another time, as its writer would have written it by another clock; the store's stays."""
    before = read(folder).snapshots[snapshot].flushed_us
    objects = [folder / "snapshots" / snapshot, *([folder / "repo"] if (folder / "repo").exists() else [])]
    for place in objects:
        data, kept = place.read_bytes(), STORE.head(str(place)).modified_ms or 0
        body = body_of(data)
        assert struct.pack("<Q", before) in body
        place.write_bytes(packed(data, body.replace(struct.pack("<Q", before), struct.pack("<Q", us))))
        date(place, kept)


def aged(folder: Path, by_us: int) -> None:
    """Makes a whole repository older, by every clock."""
    for each in read(folder).snapshots.values():
        redated(folder, each.id, each.flushed_us - by_us)
    dated_as_they_say(folder)
