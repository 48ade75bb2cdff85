"""Killed at every write, resumed: the same end. And what is written is all that a later process needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from firnline.model.times import HOUR_MS
from firnline.testing.crowds import Crowd
from firnline.testing.faults import Counting, Died, Dying

STRAYS = ("t/data/one.parquet", "t/data/two.parquet", "t/metadata/three.avro")


def lake(folder: Path) -> Crowd:
    crowd = Crowd.make(folder)
    crowd.table("t")
    crowd.table("neighbour", inside="t/data/neighbour")
    for stray in STRAYS:
        crowd.stray(stray)
    return crowd


def effects(folder: Path) -> int:
    crowd, counting = lake(folder), Counting()
    crowd.process(counting).orphans(crowd.name("t"), grace="0s", consent=lambda plan: True)
    return counting.effects


def test_killed_at_every_write_and_resumed(tmp_path: Path, record_property: object) -> None:
    deaths = 0
    for number in range(1, effects(tmp_path / "counted") + 1):
        for when in ("before", "after"):
            crowd = lake(tmp_path / f"{number}-{when}")
            with pytest.raises(Died):
                crowd.process(Dying(number, when=when)).orphans(crowd.name("t"), grace="0s", consent=lambda plan: True)
            deaths += 1
            crowd.check()
            crowd.clock.advance(HOUR_MS)
            crowd.later().resume(crowd.name("t"))
            crowd.later().orphans(crowd.name("t"), grace="0s", consent=lambda plan: True)
            assert not crowd.strays & crowd.files()
            crowd.check()
    record_property("count: deaths of a search and its purge", {"resumed to the same end": deaths})  # type: ignore[operator]
    assert deaths > 20
