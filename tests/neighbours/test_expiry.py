"""Other tables are asked before an expiry: what any of them needs stays, whichever way it came to need it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from firnline.errors import CollectionForbidden, RefusedForSafety
from firnline.testing.dated import Clock, dated
from tests.neighbours.lakes import RealLake, real_lake


def test_a_backup_registered_from_the_same_metadata_stays_readable(lake: RealLake) -> None:
    lake.create("a")
    lake.append("a", 1, 2)
    lake.catalog.register_table("db.backup", lake.table("a").metadata_location)
    lake.overwrite("a", 3)
    with pytest.raises(RefusedForSafety, match=r"lake\.db\.backup"):
        lake.expire("a")
    assert lake.read("backup") == [1, 2]
    assert lake.read("a") == [3]


def test_a_backup_under_another_catalogs_name_in_the_same_database_is_seen(lake: RealLake) -> None:
    lake.create("a")
    lake.append("a", 1, 2)
    other = SqlCatalog("unconfigured", **lake.catalog.properties)
    other.create_namespace("db")
    other.register_table("db.backup", lake.table("a").metadata_location)
    lake.overwrite("a", 3)
    with pytest.raises(RefusedForSafety, match=r"backup"):
        lake.expire("a")
    assert other.load_table("db.backup").scan().to_arrow().num_rows == 2
    other.close()


@pytest.mark.parametrize(
    "word",
    [
        {"delta-version": "7"},
        {"XTABLE_METADATA": '{"lastInstantSynced":"2026-11-01T00:00:00Z"}'},
        {"snapshot_source": "delta"},
    ],
    ids=["Delta Lake's own translation", "XTable's translation", "Iceberg's snapshot of a Delta table"],
)
def test_a_table_that_is_another_formats_in_iceberg_metadata_keeps_its_files(
    lake: RealLake, word: dict[str, str]
) -> None:
    """What no Iceberg snapshot needs any more may be in a version of the other format: its log is not read here."""
    lake.create("a", **word)
    lake.append("a", 1, 2)
    theirs = lake.data_files("a")
    lake.overwrite("a", 3)
    with pytest.raises(CollectionForbidden, match=next(iter(word))) as refused:
        lake.expire("a")
    assert "gc.enabled" not in refused.value.hint
    with pytest.raises(CollectionForbidden, match=next(iter(word))):
        lake.firnline().orphans("lake.db.a", grace="0s", consent=lambda plan: True)
    assert all(Path(each.removeprefix("file://")).exists() for each in theirs)


def test_a_backup_that_the_policy_names_counts_with_all_it_needs(lake: RealLake) -> None:
    lake.create("a")
    lake.append("a", 1, 2)
    lake.catalog.register_table("db.backup", lake.table("a").metadata_location)
    lake.overwrite("a", 3)
    lake.policy = "shared-with: [lake.db.backup]"
    done = lake.expire("a")
    assert done.state == "done"
    assert lake.read("backup") == [1, 2]
    assert len(lake.table("a").snapshots()) == 1


def test_a_file_that_another_table_took_in_stays_for_it(lake: RealLake) -> None:
    lake.create("a")
    lake.create("b")
    lake.append("a", 1, 2)
    lake.table("b").add_files(lake.data_files("a"))
    lake.overwrite("a", 3)
    done = lake.expire("a")
    assert done.state == "done"
    assert lake.read("b") == [1, 2]
    assert lake.read("a") == [3]


def test_a_table_that_writes_to_the_whole_warehouse_owns_no_other_tables_folder(lake: RealLake) -> None:
    lake.create("a")
    lake.append("a", 1, 2)
    lake.create("b", **{"write.data.path": f"file://{lake.folder}/warehouse"})
    lake.table("b").add_files(lake.data_files("a"))
    lake.overwrite("b", 3)
    for options in ({}, {"include_outside": True}):
        lake.expire("b", **options)
        assert lake.read("a") == [1, 2]
    assert lake.read("b") == [3]


def test_a_clone_under_a_uuid_of_its_own_keeps_the_files_it_shares(lake: RealLake) -> None:
    lake.create("a")
    lake.append("a", 1, 2)
    lake.append("a", 3)
    lake.clone("a", "c")
    lake.overwrite("a", 4)
    lake.expire("a")
    assert lake.read_all("c") == [[1, 2], [1, 2, 3]]
    assert lake.read("a") == [4]


@pytest.mark.parametrize("how", ["register", "add_files", "clone"])
def test_what_a_neighbour_took_up_after_the_commit_is_not_purged(lake: RealLake, how: str) -> None:
    lake.create("a")
    lake.append("a", 1, 2)
    before, files = lake.table("a").metadata_location, lake.data_files("a")
    lake.clone("a", "c") if how == "clone" else lake.create("b")
    lake.overwrite("a", 3)
    waiting = lake.expire("a", grace="1s")
    if how == "register":
        lake.catalog.register_table("db.c", before)
    elif how == "add_files":
        lake.table("b").add_files(files)
    purge = dated(lake.firnline(), Clock(2_000))
    if how == "register":
        with pytest.raises(RefusedForSafety, match=r"lake\.db\.c"):
            purge.purge(str(waiting.run.id))
    else:
        purge.purge(str(waiting.run.id))
    assert lake.read("b" if how == "add_files" else "c") == [1, 2]
    assert lake.read("a") == [3]


@pytest.mark.parametrize("road", ["beside", "inside the neighbour"])
def test_a_file_that_a_neighbour_reaches_by_a_link_stays(lake: RealLake, road: str) -> None:
    """The neighbour's name of the file begins with another folder, or even with the neighbour's own."""
    lake.create("a")
    lake.append("a", 1, 2)
    lake.create("b")
    lake.append("b", 9)
    warehouse = lake.folder / "warehouse"
    link = warehouse / "road" if road == "beside" else warehouse / "db" / "b" / "data" / "road"
    link.symlink_to(warehouse / "db" / "a" / "data")
    lake.table("b").add_files([f"file://{link}/{each.rpartition('/')[2]}" for each in lake.data_files("a")])
    lake.overwrite("a", 3)
    lake.expire("a")
    assert lake.read("b") == [1, 2, 9]


def test_a_lake_behind_a_link_is_expired_as_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "mnt").symlink_to(tmp_path / "disk")
    with real_lake(tmp_path / "mnt", monkeypatch) as lake:
        lake.create("a")
        lake.create("b")
        lake.append("a", 1, 2)
        gone = lake.data_files("a")
        lake.overwrite("a", 3)
        lake.expire("a")
        assert not any(Path(each.removeprefix("file://")).exists() for each in gone)
        assert lake.read("a") == [3]
