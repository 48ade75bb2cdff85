"""What a tier has comes back: into the live table, or to a place of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from firnline.errors import RefusedForSafety, UsageError
from tests.neighbours.lakes import COLUMN
from tests.tiers.lakes import TieredLake, tiered_lake


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TieredLake]:
    with tiered_lake(tmp_path, monkeypatch) as made:
        made.create("t")
        for number in range(4):
            made.append("t", number)
        made.overwrite("t", 9)
        yield made


def test_a_snapshot_comes_back_as_a_branch_and_stays(lake: TieredLake) -> None:
    before = lake.rows_by_snapshot("t")
    old = min(before, key=lambda each: len(before[each]) or 99)
    lake.expire("t")
    assert old not in lake.rows_by_snapshot("t")
    restored = lake.firnline().restore("lake.db.t", str(old), branch="again")
    assert restored.copied.files
    after = lake.rows_by_snapshot("t")
    assert after[old] == before[old]
    assert lake.table("t").metadata.refs["again"].snapshot_id == old
    lake.append("t", 5)
    lake.expire("t")
    assert lake.rows_by_snapshot("t")[old] == before[old]
    assert lake.firnline().check("lake.db.t").sound


def test_without_a_name_it_comes_back_under_a_tag(lake: TieredLake) -> None:
    first = lake.table("t").snapshots()[0].snapshot_id
    lake.expire("t")
    lake.firnline().restore("lake.db.t", str(first))
    assert lake.table("t").metadata.refs[f"restored-{first}"].snapshot_id == first
    again = lake.firnline().restore("lake.db.t", str(first))
    assert again.copied.files == 0


def test_a_snapshot_is_read_at_a_place_of_its_own(lake: TieredLake, tmp_path: Path) -> None:
    before = lake.rows_by_snapshot("t")
    lake.expire("t")
    old = next(each for each in before if each not in lake.rows_by_snapshot("t"))
    restored = lake.firnline().restore("lake.db.t", str(old), to=f"file://{tmp_path}/elsewhere")
    assert restored.metadata is not None
    table = StaticTable.from_metadata(restored.metadata)
    assert sorted(table.scan(snapshot_id=old).to_arrow().column(COLUMN).to_pylist()) == before[old]
    assert all(f"{tmp_path}/elsewhere" in each.file.file_path for each in table.scan(snapshot_id=old).plan_files())


def test_a_name_that_is_taken_is_refused(lake: TieredLake) -> None:
    first = lake.table("t").snapshots()[0].snapshot_id
    lake.expire("t")
    with pytest.raises(UsageError, match="already"):
        lake.firnline().restore("lake.db.t", str(first), branch="main")


def test_what_no_tier_has_is_said(lake: TieredLake) -> None:
    lake.expire("t")
    with pytest.raises(UsageError, match="no tier has"):
        lake.firnline().restore("lake.db.t", "17")


def test_nothing_is_restored_into_the_tier_or_the_table(lake: TieredLake) -> None:
    first = lake.table("t").snapshots()[0].snapshot_id
    lake.expire("t")
    for folder in (lake.cold_root, lake.folder / "warehouse", lake.folder / "warehouse" / "db" / "t" / "x"):
        with pytest.raises(UsageError, match="lie in each other"):
            lake.firnline().restore("lake.db.t", str(first), to=f"file://{folder}")


def test_a_damaged_copy_is_not_brought_back(lake: TieredLake) -> None:
    first = lake.table("t").snapshots()[0].snapshot_id
    lake.expire("t")
    for file in lake.cold_root.rglob("*.parquet"):
        file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(RefusedForSafety):
        lake.firnline().restore("lake.db.t", str(first), branch="again")
    assert "again" not in lake.table("t").metadata.refs
