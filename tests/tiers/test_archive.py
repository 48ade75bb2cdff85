"""What a policy hands to a tier is there, complete and readable by any engine, before the live table loses it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tiers.lakes import TieredLake, tiered_lake


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TieredLake]:
    with tiered_lake(tmp_path, monkeypatch) as made:
        yield made


def test_expired_snapshots_are_read_from_the_tier(lake: TieredLake) -> None:
    lake.create("t")
    for number in range(5):
        lake.append("t", number)
    lake.overwrite("t", 7, 8)
    before = lake.rows_by_snapshot("t")
    done = lake.expire("t")
    assert done.state == "done"
    live = lake.rows_by_snapshot("t")
    assert len(live) == 1
    assert lake.cold_rows("t") == {each: rows for each, rows in before.items() if each not in live}
