"""Queries for what only a tier has: routed there, and told; or refused with the place of the answer. Spark hands it
over, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from firnline.app.places import now_ms
from firnline.errors import UsageError
from firnline.lake import Lake
from tests.tiers.deep_lakes import FORMAL, deep_lake
from tests.tiers.lakes import TieredLake, tiered_lake

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def tiered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TieredLake]:
    folder = tmp_path_factory.mktemp("queries").resolve()
    with pytest.MonkeyPatch.context() as patch, tiered_lake(folder, patch) as lake:
        lake.policy += "history: forever\n"
        lake.create("t")
        lake.append("t", 1)
        first = lake.table("t").snapshots()[0].snapshot_id
        lake.table("t").manage_snapshots().create_tag(first, "audit", max_ref_age_ms=1).commit()
        lake.append("t", 2)
        lake.append("t", 3)
        lake.firnline("spark").expire("lake.db.t", older_than=now_ms(), retain_last=1, grace="0s")
        yield lake


def asked(lake: Lake, text: str) -> list[tuple[object, ...]]:
    (found,) = lake.sql(text)
    return sorted(tuple(row) for row in found.collect())  # type: ignore[union-attr]


def test_a_version_that_only_the_tier_has_is_read_there(tiered: TieredLake, capsys: pytest.CaptureFixture[str]) -> None:
    lake = tiered.firnline("auto")
    first = tiered.cold_table("t").snapshots()[0]
    at = datetime.fromtimestamp(first.timestamp_ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
    for version in (f"VERSION AS OF {first.snapshot_id}", "VERSION AS OF 'audit'", f"TIMESTAMP AS OF '{at}'"):
        assert asked(lake, f"SELECT x FROM lake.db.t {version}") == [(1,)]
        assert f"read from cold.db.t, snapshot {first.snapshot_id}" in capsys.readouterr().err
    assert asked(lake, "SELECT x FROM lake.db.t") == [(1,), (2,), (3,)]
    assert asked(lake, "SELECT x FROM cold.db.t VERSION AS OF 'audit'") == [(1,)]
    assert capsys.readouterr().err == ""


def test_without_routes_the_error_says_who_has_it(tiered: TieredLake) -> None:
    lake = tiered.firnline("auto")
    lake.route = False
    first = tiered.cold_table("t").snapshots()[0]
    with pytest.raises(UsageError, match="has no snapshot") as refused:
        asked(lake, f"SELECT x FROM lake.db.t VERSION AS OF {first.snapshot_id}")
    assert "cold.db.t has it" in refused.value.hint


def test_all_snapshots_say_where_each_lives(tiered: TieredLake) -> None:
    lake = tiered.firnline("auto")
    found = asked(lake, "SELECT expired, tier, count(*) FROM lake.db.t.all_snapshots GROUP BY expired, tier")
    assert found == [(False, "live", 1), (True, "cold", 2)]


def test_the_ledger_says_where_the_tier_has_it(tiered: TieredLake) -> None:
    lake = tiered.firnline("auto")
    places = asked(lake, "SELECT DISTINCT archive_location FROM lake.db.t.ledger")
    assert places == [(tiered.cold_table("t").metadata_location,)]


@pytest.mark.full
def test_what_sleeps_is_told_and_comes_back_by_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors pack it, and take it out again; a query says where the answer sleeps, and reads no older one."""
    with deep_lake(tmp_path, monkeypatch) as lake:
        lake.create("t")
        for number in range(3):
            lake.append("t", number)
        lake.overwrite("t", 9)
        before = lake.rows_by_snapshot("t")
        lake.firnline("spark").expire("lake.db.t", older_than=now_ms(), retain_last=1, grace="0s")
        lake.firnline("spark").expire("cold.db.t", grace="0s", blast_radius=1.0)
        assert lake.bundles()
        asleep, spark = min(lake.deep_ids("t")), lake.firnline("spark")
        with pytest.raises(UsageError, match=f"sleeps in deep.db.t, as snapshot {asleep}") as refused:
            asked(spark, f"SELECT x FROM lake.db.t VERSION AS OF {asleep}")
        assert f"firnline restore lake.db.t {asleep}" in refused.value.hint
        spark.restore("lake.db.t", str(asleep), inquiry=FORMAL)
        found = asked(lake.firnline("spark"), f"SELECT x FROM lake.db.t VERSION AS OF {asleep}")
        assert found == [(each,) for each in before[asleep]]
