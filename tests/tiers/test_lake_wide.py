"""One policy for a whole lake: what cannot be handed over is told, and stops nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firnline.app.places import now_ms
from tests.tiers.lakes import TieredLake, tiered_lake


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TieredLake]:
    with tiered_lake(tmp_path, monkeypatch) as made:
        yield made


def _fill(lake: TieredLake, *names: str) -> None:
    for name in names:
        lake.create(name)
        for number in (1, 2, 3):
            lake.append(name, number)


def _expired(lake: TieredLake) -> dict[str, Any]:
    """Returns what became of each table of the lake, by its name: None, or the trouble with it."""
    answers = lake.firnline().several().expire(older_than=now_ms(), retain_last=1, grace="0s")
    return {str(each.table): each.problem for each in answers}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("says", ["the tier's own tables are handed nowhere", "nothing of these"])
def test_the_tables_of_tiers_are_left_alone(lake: TieredLake, says: str) -> None:
    """Night after night the same command succeeds."""
    if says.startswith("nothing"):
        lake.policy = lake.policy.partition("catalogs:")[0]
    _fill(lake, "a")
    before = lake.rows_by_snapshot("a")
    for _ in range(2):
        assert _expired(lake) == {"lake.db.a": None}
    live = lake.rows_by_snapshot("a")
    assert lake.cold_rows("a") == {each: rows for each, rows in before.items() if each not in live}
    looked_at = lake.firnline().several().check()
    assert {str(each.table): each.problem for each in looked_at} == {"lake.db.a": None, "cold.db.a": None}


def test_one_that_cannot_be_handed_over_stops_no_other(lake: TieredLake) -> None:
    """The tier has another table under the name of one, and a file of another one is gone."""
    _fill(lake, "a", "b", "c")
    lake.cold.create_namespace("db")
    lake.cold.register_table("db.a", lake.table("a").metadata_location)
    oldest = min(lake.table("b").snapshots(), key=lambda each: each.timestamp_ms)
    (task,) = lake.table("b").scan(snapshot_id=oldest.snapshot_id).plan_files()
    Path(task.file.file_path.removeprefix("file://")).unlink()
    before = lake.rows_by_snapshot("c")
    said = _expired(lake)
    assert {name for name, problem in said.items() if problem} == {"lake.db.a", "lake.db.b"}
    assert [len(lake.table(name).snapshots()) for name in ("a", "b", "c")] == [3, 3, 1]
    live = lake.rows_by_snapshot("c")
    assert lake.cold_rows("c") == {each: rows for each, rows in before.items() if each not in live}
