"""What a policy hands to a tier is there, complete and readable by any engine, before the live table loses it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firnline.app.places import now_ms
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


def test_a_run_hands_over_what_the_tier_lacks_and_leaves_what_it_has(lake: TieredLake) -> None:
    lake.create("t")
    for number in range(3):
        lake.append("t", number)
    assert lake.firnline().archive("lake.db.t", older_than=now_ms(), retain_last=1).copied.files
    before = lake.rows_by_snapshot("t")
    again = lake.firnline().archive("lake.db.t", older_than=now_ms(), retain_last=1)
    assert (again.copied.files, len(again.snapshots)) == (0, 2)
    assert lake.rows_by_snapshot("t") == before
    lake.append("t", 3)
    assert lake.expire("t").state == "done"
    assert set(lake.cold_rows("t")) == set(before)


def test_the_plan_says_what_is_handed_over_and_what_it_costs(lake: TieredLake) -> None:
    lake.create("t")
    for number in range(3):
        lake.append("t", number)
    plan = lake.firnline().plan("lake.db.t", older_than=now_ms(), retain_last=1)
    said = plan.to_json()["archive"]
    assert (said["tier"], said["table"], len(said["snapshots"])) == ("cold", "cold.db.t", 2)
    assert said["copies"]["files"] == 6  # two data files, two manifests, two lists
    assert said["costs"]["live_before"] > said["costs"]["live_after"]
    assert "hand 2 snapshots to cold" in str(plan)


def test_tiers_says_where_each_snapshot_lives(lake: TieredLake) -> None:
    lake.create("t")
    for number in range(3):
        lake.append("t", number)
    first, second, third = (each.snapshot_id for each in lake.table("t").snapshots())
    lake.expire("t", grace="1d")
    found = lake.firnline().tiers("lake.db.t")
    assert {int(each.id): each.tiers for each in found.snapshots} == {
        first: ("cold",), second: ("cold",), third: ("live",)
    }  # fmt: skip
    assert [(each.tier, each.snapshots) for each in found.holdings] == [("live", 1), ("cold", 2)]


def test_tags_and_times_find_what_expired(lake: TieredLake) -> None:
    lake.create("t")
    lake.append("t", 1)
    table = lake.table("t")
    first = table.snapshots()[0]
    table.manage_snapshots().create_tag(first.snapshot_id, "audit", max_ref_age_ms=1).commit()
    lake.append("t", 2)
    lake.expire("t")
    cold = lake.cold_table("t")
    assert {name: ref.snapshot_id for name, ref in cold.metadata.refs.items()}["audit"] == first.snapshot_id
    at = cold.snapshot_as_of_timestamp(first.timestamp_ms)
    assert at is not None
    assert at.snapshot_id == first.snapshot_id
    assert cold.metadata.properties["gc.enabled"] == "false"


def test_a_history_that_the_tiers_catalog_lost_is_taken_up_again(lake: TieredLake) -> None:
    lake.create("t")
    for number in range(3):
        lake.append("t", number)
    before = lake.rows_by_snapshot("t")
    lake.expire("t")
    lake.cold.drop_table("db.t")
    lake.append("t", 3)
    lake.expire("t")
    assert set(lake.cold_rows("t")) == set(before)
