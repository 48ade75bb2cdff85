"""Metadata in a table's folder that the table's own catalog never had: somebody may live by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from firnline.app.places import now_ms
from firnline.errors import RefusedForSafety
from firnline.lake import Lake, open_lake
from firnline.model.times import DAY_MS
from firnline.testing.dated import date
from harness.disks import local
from tests.catalogs.lakes import SCHEMA, rows

CONFIG = "catalog:\n  lake:\n    type: sql\n    uri: {uri}\n    warehouse: {warehouse}\n"
DAYS = 10


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqlCatalog:
    """The catalog that firnline knows, with an empty namespace `db`."""
    for name in ("PYICEBERG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    settings = {"uri": f"sqlite:///{tmp_path}/ours.db", "warehouse": f"file://{tmp_path}/house"}
    (tmp_path / ".pyiceberg.yaml").write_text(CONFIG.format(**settings))
    catalog = SqlCatalog("lake", **settings)
    catalog.create_namespace("db")
    return catalog


@pytest.fixture
def theirs(tmp_path: Path) -> SqlCatalog:
    """A catalog that nobody configured."""
    catalog = SqlCatalog("theirs", uri=f"sqlite:///{tmp_path}/theirs.db", warehouse=f"file://{tmp_path}/house")
    catalog.create_namespace("db")
    return catalog


def grown(catalog: SqlCatalog, commits: int = 3, **properties: str) -> Table:
    table = catalog.create_table("db.t", SCHEMA, properties=properties)
    for number in range(commits):
        table.append(rows(number))
    return table


def aged(folder: Path) -> None:
    for file in (each for each in folder.rglob("*") if each.is_file()):
        date(file, now_ms() - DAYS * DAY_MS)


def files(tmp_path: Path) -> set[str]:
    found = (each for each in (tmp_path / "house").rglob("*") if each.is_file())
    return {str(each) for each in found if "_firnline" not in each.parts}


def search(tmp_path: Path, **asked: Any) -> set[str]:
    """Returns what a search of the table removed."""
    aged(tmp_path / "house")
    before = files(tmp_path)
    lake: Lake = open_lake(engine="local")
    lake.orphans("lake.db.t", grace="0s", blast_radius=1.0, consent=lambda plan: True, **asked)
    return before - files(tmp_path)


def stray(table: Table) -> str:
    left = local(f"{table.location()}/data/left.parquet")
    left.write_bytes(b"nobody's")
    return str(left)


def read(catalog: SqlCatalog) -> list[int]:
    return sorted(catalog.load_table("db.t").scan().to_arrow().column("id").to_pylist())


@pytest.mark.parametrize("commits", [1, 3])
def test_a_table_that_went_another_way_in_a_catalog_nobody_configured_stops_the_search(
    ours: SqlCatalog, theirs: SqlCatalog, tmp_path: Path, commits: int
) -> None:
    """The other way is the older one: nothing but its snapshots tells."""
    mine = grown(ours)
    other = theirs.register_table("db.t", mine.metadata_location)
    for number in range(commits):
        other.append(rows(100 + number))
    mine.append(rows(7))
    garbage = stray(mine)
    before = read(theirs)
    with pytest.raises(RefusedForSafety, match="no known version") as refused:
        search(tmp_path)
    assert "with also" in refused.value.hint
    assert other.metadata_location in refused.value.hint
    assert search(tmp_path, also=(other.metadata_location,)) == {garbage}
    assert read(theirs) == before


def test_a_table_that_went_another_way_and_expired_its_past_stops_the_search(
    ours: SqlCatalog, theirs: SqlCatalog, tmp_path: Path
) -> None:
    mine = grown(ours)
    other = theirs.register_table("db.t", mine.metadata_location)
    other.overwrite(rows(100))
    old = [each.snapshot_id for each in other.metadata.snapshots][:-1]
    other.maintenance.expire_snapshots().by_ids(old).commit()
    mine.append(rows(7))
    before = read(theirs)
    with pytest.raises(RefusedForSafety, match="no known version"):
        search(tmp_path)
    assert read(theirs) == before


def test_what_the_operator_says_was_never_committed_goes(ours: SqlCatalog, theirs: SqlCatalog, tmp_path: Path) -> None:
    mine = grown(ours)
    other = theirs.register_table("db.t", mine.metadata_location)
    other.append(rows(100))
    mine.append(rows(7))
    gone = search(tmp_path, dead=frozenset({other.metadata_location}))
    assert str(local(other.metadata_location)) in gone
    assert read(ours) == [0, 1, 2, 7]


@pytest.mark.parametrize("versions", ["1", "2", "100"])
def test_old_metadata_beyond_the_log_stops_nothing(ours: SqlCatalog, tmp_path: Path, versions: str) -> None:
    """Snapshots that the table itself expired, with a library that leaves every file."""
    mine = grown(ours, commits=4, **{"write.metadata.previous-versions-max": versions})
    for number in range(3):
        mine.overwrite(rows(10 + number))
        old = [each.snapshot_id for each in mine.metadata.snapshots][:-1]
        mine.maintenance.expire_snapshots().by_ids(old).commit()
    garbage = stray(mine)
    gone = search(tmp_path)
    assert garbage in gone
    assert len(gone) > 10
    assert read(ours) == [12]


def test_metadata_that_no_log_leads_to_stops_the_search_while_its_snapshots_can_be_read(
    ours: SqlCatalog, tmp_path: Path
) -> None:
    mine = grown(ours, commits=1, **{"write.metadata.previous-versions-max": "1"})
    first = mine.metadata.snapshots[0]
    for number in range(3):
        mine.overwrite(rows(10 + number))
    oldest = sorted(local(f"{mine.location()}/metadata").glob("00001*.metadata.json"))[0]
    old = [each.snapshot_id for each in mine.metadata.snapshots][:-1]
    mine.maintenance.expire_snapshots().by_ids(old).commit()
    for each in local(f"{mine.location()}/metadata").glob("*.metadata.json"):
        if each not in (oldest, local(mine.metadata_location)):
            each.unlink()
    with pytest.raises(RefusedForSafety, match="no known version"):
        search(tmp_path)
    local(first.manifest_list).unlink()
    assert str(oldest) in search(tmp_path)
    assert read(ours) == [12]


def test_what_a_run_of_ours_expired_is_explained_without_any_log(ours: SqlCatalog, tmp_path: Path) -> None:
    mine = grown(ours, commits=3, **{"write.metadata.previous-versions-max": "1"})
    mine.overwrite(rows(10))
    oldest = sorted(local(f"{mine.location()}/metadata").glob("00002*.metadata.json"))[0]
    lake: Lake = open_lake(engine="local")
    lake.expire("lake.db.t", older_than=now_ms() + 1, retain_last=1, grace="0s", blast_radius=1.0)
    mine = ours.load_table("db.t")
    document = json.loads(oldest.read_text())
    for each in document["snapshots"]:  # deletes that failed, or another copy of them
        path = local(each["manifest-list"])
        path.write_bytes(b"left")
    for each in local(f"{mine.location()}/metadata").glob("*.metadata.json"):
        if each not in (oldest, local(mine.metadata_location)):
            each.unlink()
    assert str(oldest) in search(tmp_path)
    assert read(ours) == [10]


def test_a_commit_that_is_on_its_way_does_not_stop_the_search(
    ours: SqlCatalog, theirs: SqlCatalog, tmp_path: Path
) -> None:
    mine = grown(ours)
    garbage = stray(mine)
    other = theirs.register_table("db.t", mine.metadata_location)
    aged(tmp_path / "house")
    other.append(rows(100))
    mine.append(rows(7))
    lake: Lake = open_lake(engine="local")
    lake.orphans("lake.db.t", grace="0s", consent=lambda plan: True)
    assert not Path(garbage).exists()
    assert read(theirs) == [0, 1, 2, 100]
