"""Files that are reached by links: what no purge removes is refused before anything is changed, for what it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from firnline.errors import RefusedForSafety
from tests.erasure.erasing import erase, file_of, is_lying, planned
from tests.neighbours.lakes import RealLake
from tests.neighbours.test_roads import home, moved_and_linked


def _local(path: str) -> Path:
    return Path(path.removeprefix("file://"))


@pytest.mark.parametrize("inside", [True, False])
def test_a_link_is_refused_and_what_it_leads_to_stays(plain: RealLake, tmp_path: Path, inside: bool) -> None:
    """It was taken out of every snapshot, and left there for ever; or another table was blamed."""
    path = file_of(plain, "t", 1)
    moved_and_linked(_local(path), (home(plain, "t") / "data" if inside else tmp_path) / "itself.parquet")
    (live,) = planned(plain, "t", path).tables
    assert live.refused is not None
    assert "is a link to" in live.refused
    with pytest.raises(RefusedForSafety, match="is a link to"):
        erase(plain, "t", path)
    assert plain.read("t") == [0, 1, 2, 3]


def test_a_data_folder_that_lies_elsewhere_is_said(plain: RealLake, tmp_path: Path) -> None:
    path = file_of(plain, "t", 1)
    moved_and_linked(home(plain, "t") / "data", tmp_path / "moved")
    with pytest.raises(RefusedForSafety, match=r"lies outside the own folders of lake\.db\.t: it is file://.*/moved/"):
        erase(plain, "t", path)
    plain.policy = "include-outside: true"
    assert erase(plain, "t", path).is_done
    assert not is_lying(path)
    assert plain.read("t") == [0, 2, 3]


def test_a_file_that_the_table_has_by_two_paths_goes_by_both(plain: RealLake) -> None:
    path = file_of(plain, "t", 1)
    (home(plain, "t") / "road").symlink_to(home(plain, "t") / "data")
    other = path.replace("/data/", "/road/")
    plain.table("t").add_files([other])
    with pytest.raises(RefusedForSafety, match="another table needs it, or this one by another path"):
        erase(plain, "t", path)
    assert erase(plain, "t", path, other).is_done
    assert not is_lying(path)
    assert plain.read("t") == [0, 2, 3]


def test_a_lake_behind_a_link_loses_it(plain: RealLake) -> None:
    path = file_of(plain, "t", 1)
    moved_and_linked(plain.folder / "warehouse", plain.folder / "elsewhere")
    assert erase(plain, "t", path).is_done
    assert not is_lying(path)
    assert plain.read("t") == [0, 2, 3]


def test_another_name_of_the_same_bytes_is_told(plain: RealLake, tmp_path: Path) -> None:
    path = file_of(plain, "t", 1)
    assert planned(plain, "t", path).notes == ()
    os.link(_local(path), tmp_path / "other-name.parquet")
    assert planned(plain, "t", path).notes == (
        f"{path} has more names on its disk (hard links: 1), by which its bytes stay",
    )
