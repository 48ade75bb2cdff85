"""Folders that firnline may not look into: what another table needs there is not known, and that stops a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from firnline.errors import RefusedForSafety
from harness.disks import as_a_user
from tests.neighbours.lakes import RealLake
from tests.neighbours.test_index import plan
from tests.neighbours.test_roads import home, imported, linked

CLOSED, LISTED_ONLY = 0o000, 0o444
NOT_SEEN = r"nobody can tell which files lake\.db\.b needs: nobody can tell where .* leads: Permission denied"


@pytest.fixture
def locked(lake: RealLake, tmp_path: Path) -> Path:
    """A folder. Table `a` has a file and overwrites it; `b` was there before it needed anything of `a`."""
    lake.create("a")
    lake.create("b")
    data = home(lake, "a") / "data"
    imported(lake, "a", 7, data, data)
    lake.overwrite("a", 2)
    folder = tmp_path / "locked"
    folder.mkdir()
    return folder


def refused_while(lake: RealLake, folder: Path, mode: int) -> None:
    folder.chmod(mode)
    with as_a_user(), pytest.raises(RefusedForSafety, match=NOT_SEEN):
        lake.expire("a", blast_radius=1.0)
    folder.chmod(0o755)
    lake.expire("a", blast_radius=1.0)
    assert lake.read("b") == [7]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mode", [CLOSED, LISTED_ONLY])
def test_a_link_to_one_file_that_may_not_be_seen_stops_it(lake: RealLake, locked: Path, mode: int) -> None:
    target = home(lake, "a") / "data" / "imported-7.parquet"
    lake.table("b").add_files([linked(target, locked / "other.parquet")])
    refused_while(lake, locked, mode)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mode", [CLOSED, LISTED_ONLY])
def test_a_folder_by_a_link_that_may_not_be_seen_stops_it(lake: RealLake, locked: Path, mode: int) -> None:
    (locked / "road").symlink_to(home(lake, "a") / "data")
    lake.table("b").add_files([f"file://{locked}/road/imported-7.parquet"])
    refused_while(lake, locked, mode)


def test_a_folder_that_may_not_be_seen_any_more_is_not_where_it_was(lake: RealLake, locked: Path) -> None:
    """What was found while it could be seen is remembered; `sharing: none` lets others go on."""
    imported(lake, "b", 7, locked, locked)
    assert plan(lake).asked == 1
    refused_while(lake, locked, CLOSED)
    locked.chmod(CLOSED)
    lake.policy = "catalogs: {lake: {namespaces: {db: {tables: {b: {sharing: none}}}}}}"
    with as_a_user():
        assert plan(lake).asked == 0


def test_a_table_whose_records_may_not_be_listed_stops_it(lake: RealLake, locked: Path) -> None:
    """A run of it that can be undone needs what it took out; asking again for a right does not help."""
    lake.append("b", 1)
    home(lake, "b").chmod(0o311)
    with as_a_user(), pytest.raises(RefusedForSafety, match=r"which files lake\.db\.b needs: cannot list") as refused:
        lake.expire("a", blast_radius=1.0)
    assert "sharing: none" in refused.value.hint
    home(lake, "b").chmod(0o755)


def test_of_many_tables_one_that_may_not_be_seen_stops_no_other(lake: RealLake, locked: Path) -> None:
    """Where its operator says that it shares no file: else nobody knows what it needs."""
    imported(lake, "b", 7, locked, locked)
    lake.overwrite("b", 1)
    lake.policy = "catalogs: {lake: {namespaces: {db: {tables: {b: {sharing: none}}}}}}"
    locked.chmod(CLOSED)
    with as_a_user():
        a, b = lake.firnline().several().plan(older_than="0d", retain_last=1)
    assert a.problem is None
    assert b.problem is not None
    assert "Permission denied" in b.problem.message
    locked.chmod(0o755)
