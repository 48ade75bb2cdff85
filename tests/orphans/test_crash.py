"""Killed at every write, resumed: the same end. And what is written is all that a later process needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from firnline.testing.faults import CountingFault, Died, Dying
from harness.crowds import LEASE, Crowd

STRAYS = ("t/data/one.parquet", "t/data/two.parquet", "t/metadata/three.avro")


def lake(folder: Path) -> Crowd:
    crowd = Crowd.make(folder)
    crowd.table("t")
    crowd.table("neighbour", inside="t/data/neighbour")
    for stray in STRAYS:
        crowd.stray(stray)
    return crowd


def effects(folder: Path) -> int:
    crowd, counting = lake(folder), CountingFault()
    crowd.process(counting).orphans(crowd.name("t"), grace="0s", consent=lambda plan: True)
    return counting.effects


FULL = bool(os.environ.get("FIRNLINE_FULL"))


def test_killed_at_every_write_and_resumed(tmp_path: Path, record_property: object) -> None:
    deaths = 0
    for number in range(1, effects(tmp_path / "counted") + 1):
        for when in ("before", "after") if FULL else ("before",):  # after one write is before the next
            crowd = lake(tmp_path / f"{number}-{when}")
            with pytest.raises(Died):
                crowd.process(Dying(number, when=when)).orphans(crowd.name("t"), grace="0s", consent=lambda plan: True)
            deaths += 1
            crowd.check()
            crowd.clock.advance(LEASE.length_ms + LEASE.margin_ms + 1_000)
            crowd.process().resume(crowd.name("t"))
            crowd.process().orphans(crowd.name("t"), grace="0s", consent=lambda plan: True)
            assert not crowd.strays & crowd.files()
            crowd.check()
    record_property("count: deaths of a search and its purge", {"resumed to the same end": deaths})  # type: ignore[operator]
    assert deaths > 10
