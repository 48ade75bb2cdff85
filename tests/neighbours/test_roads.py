"""One file, two roads: an expiry spares what is needed by another path, through a link, than the one it knows."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from firnline.ops.neighbours import index
from firnline.ops.neighbours.around import around
from firnline.stores import mounts
from firnline.stores.real_paths import RealPaths
from firnline.testing.dated import Clock, dated
from tests.neighbours.lakes import RealLake, real_lake, rows
from tests.neighbours.test_index import plan


def imported(lake: RealLake, name: str, number: int, folder: Path, spelled: Path) -> None:
    """Adds a new data file, which lies in a folder, to a table by another spelling of that folder."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows(number), folder / f"imported-{number}.parquet")
    lake.table(name).add_files([f"file://{spelled}/imported-{number}.parquet"])


def home(lake: RealLake, name: str) -> Path:
    return Path(lake.table(name).location().removeprefix("file://"))


def test_what_another_table_imported_by_a_link_stays(lake: RealLake, tmp_path: Path) -> None:
    lake.create("a")
    lake.create("b")
    lake.append("b", 1)
    os.symlink(home(lake, "a"), tmp_path / "road")
    imported(lake, "a", 7, home(lake, "a") / "data", home(lake, "a") / "data")
    lake.table("b").add_files([f"file://{tmp_path}/road/data/imported-7.parquet"])
    lake.overwrite("a", 2)
    lake.expire("a", blast_radius=1.0)
    assert lake.read("a") == [2]
    assert lake.read("b") == [1, 7]


def moved_and_linked(place: Path, inside: Path) -> None:
    place.rename(inside)
    place.symlink_to(inside)


def taken_in_and_expired(lake: RealLake, file: Path) -> None:
    """The table `a` takes a file in, overwrites it and expires."""
    lake.table("a").add_files([f"file://{file}"])
    lake.overwrite("a", 3)
    lake.expire("a", blast_radius=1.0)


@pytest.fixture
def looked_at(lake: RealLake) -> RealLake:
    """A lake with two tables, of which `a` has something to expire."""
    lake.create("a")
    lake.create("b")
    lake.append("a", 1)
    lake.overwrite("a", 2)
    return lake


@pytest.mark.parametrize("moved", ["shared", "shared/imported-7.parquet"])
def test_what_another_table_imported_stays_when_it_was_moved_since_and_left_a_link(
    looked_at: RealLake, moved: str
) -> None:
    shared, inside = looked_at.folder / "shared", home(looked_at, "a") / "data" / Path(moved).name
    imported(looked_at, "b", 7, shared, shared)
    assert plan(looked_at).asked == 1
    moved_and_linked(looked_at.folder / moved, inside)
    taken_in_and_expired(looked_at, (shared / "imported-7.parquet").resolve())
    assert looked_at.read("b") == [7]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("below", [".", "data", "data/day=1", "data/day=1/imported-7.parquet"])
def test_what_another_table_has_stays_when_its_own_folder_or_file_was_moved_since_and_left_a_link(
    looked_at: RealLake, below: str
) -> None:
    data = home(looked_at, "b") / "data" / "day=1"
    imported(looked_at, "b", 7, data, data)
    assert plan(looked_at).asked == 1
    moved_and_linked(home(looked_at, "b") / below, home(looked_at, "a") / "data" / "moved")
    taken_in_and_expired(looked_at, (data / "imported-7.parquet").resolve())
    assert looked_at.read("b") == [7]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("moved", ["p7", "p7/imported.parquet"])
def test_what_another_table_imported_from_many_folders_stays_when_one_was_moved(
    looked_at: RealLake, moved: str
) -> None:
    """Above so many folders no one folder tells of links in them."""
    shared, inside = looked_at.folder / "shared", home(looked_at, "a") / "data" / Path(moved).name
    for number in range(40):
        (shared / f"p{number}").mkdir(parents=True)
        pq.write_table(rows(number), shared / f"p{number}" / "imported.parquet")
    looked_at.table("b").add_files([f"file://{shared}/p{number}/imported.parquet" for number in range(40)])
    assert plan(looked_at).asked == 1
    moved_and_linked(shared / moved, inside)
    taken_in_and_expired(looked_at, (shared / "p7" / "imported.parquet").resolve())
    assert looked_at.read("b") == list(range(40))


def test_what_was_remembered_before_links_to_files_were_followed_is_not_believed(
    lake: RealLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create("a")
    lake.create("b")
    data = home(lake, "a") / "data"
    imported(lake, "a", 7, data, data)
    lake.table("b").add_files([linked(data / "imported-7.parquet", home(lake, "b") / "data" / "other.parquet")])
    lake.overwrite("a", 2)
    with monkeypatch.context() as before:
        before.setattr(index, "_LAYOUT", 4)
        before.setattr(RealPaths, "__call__", RealPaths.entry)
        assert "needed-elsewhere" not in plan(lake).spared
    lake.expire("a", blast_radius=1.0)
    assert lake.read("b") == [7]


def linked(target: Path, link: Path) -> str:
    """Makes a link to one file, by another name, and returns what a table calls it."""
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)
    return f"file://{link}"


@pytest.mark.parametrize("inside", [False, True])
def test_what_another_table_imported_by_a_link_to_one_file_stays(lake: RealLake, tmp_path: Path, inside: bool) -> None:
    lake.create("a")
    lake.create("b")
    lake.append("b", 1)
    data = home(lake, "a") / "data"
    imported(lake, "a", 7, data, data)
    link = (home(lake, "b") / "data" if inside else tmp_path / "links") / "other.parquet"
    lake.table("b").add_files([linked(data / "imported-7.parquet", link)])
    lake.overwrite("a", 2)
    lake.expire("a", blast_radius=1.0)
    assert lake.read("a") == [2]
    assert lake.read("b") == [1, 7]


def test_a_link_that_another_tables_link_leads_through_stays(lake: RealLake, tmp_path: Path) -> None:
    """The link in the middle is the table's own file by its name: with it the way to the last file would go."""
    lake.create("a")
    lake.create("b")
    data, last = home(lake, "a") / "data", tmp_path / "elsewhere"
    imported(lake, "b", 7, last, last)
    lake.overwrite("b", 1)
    middle = linked(last / "imported-7.parquet", data / "middle.parquet")
    lake.table("a").add_files([middle])
    lake.table("b").add_files([linked(data / "middle.parquet", tmp_path / "links" / "first.parquet")])
    lake.overwrite("a", 2)
    lake.expire("a", blast_radius=1.0)
    assert lake.read("b") == [1, 7]


def test_a_neighbours_file_that_a_link_in_the_tables_own_folder_leads_to_stays(lake: RealLake) -> None:
    lake.create("a")
    lake.create("b")
    theirs = home(lake, "b") / "data"
    imported(lake, "b", 7, theirs, theirs)
    ours = linked(theirs / "imported-7.parquet", home(lake, "a") / "data" / "ours.parquet")
    lake.table("a").add_files([ours])
    lake.overwrite("a", 2)
    lake.expire("a", blast_radius=1.0)
    assert lake.read("a") == [2]
    assert lake.read("b") == [7]


def test_what_the_table_itself_needs_by_a_link_to_one_file_stays(lake: RealLake, tmp_path: Path) -> None:
    lake.create("a")
    data = home(lake, "a") / "data"
    imported(lake, "a", 7, data, data)
    lake.overwrite("a", 2)
    lake.table("a").add_files([linked(data / "imported-7.parquet", tmp_path / "links" / "other.parquet")])
    lake.expire("a", blast_radius=1.0)
    assert lake.read("a") == [2, 7]


@pytest.mark.parametrize("owner", ["a", "b"])
def test_what_is_imported_by_a_link_to_one_file_after_the_commit_stays(
    lake: RealLake, tmp_path: Path, owner: str
) -> None:
    """`owner` takes the file in again between the commit of an expiry and its purge, under another last name."""
    lake.create("a")
    lake.create("b")
    lake.append("b", 1)
    data = home(lake, "a") / "data"
    imported(lake, "a", 7, data, data)
    lake.overwrite("a", 2)
    waiting = lake.expire("a", blast_radius=1.0, grace="1s")
    before = lake.read(owner)
    lake.table(owner).add_files([linked(data / "imported-7.parquet", tmp_path / "links" / "other.parquet")])
    dated(lake.firnline(), Clock(2_000)).purge(str(waiting.run.id))
    assert lake.read(owner) == sorted([*before, 7])


@pytest.mark.parametrize("owner", ["a", "b"])
def test_what_a_link_leads_to_that_took_the_place_of_a_kept_file_during_grace_stays(lake: RealLake, owner: str) -> None:
    """As programs make it that look for files of the same bytes to save room."""
    lake.create("a")
    lake.create("b")
    lake.append("b", 1)
    lake.append("a", 1)
    (twin,) = lake.data_files("a")
    lake.overwrite("a", 1)
    (kept,) = (Path(each.removeprefix("file://")) for each in lake.data_files(owner))
    waiting = lake.expire("a", blast_radius=1.0, grace="1s")
    kept.unlink()
    kept.symlink_to(twin.removeprefix("file://"))
    dated(lake.firnline(), Clock(2_000)).purge(str(waiting.run.id))
    assert lake.read(owner) == [1]


def mounted(monkeypatch: pytest.MonkeyPatch, lake: RealLake, what: Path, where: Path) -> None:
    """Says that a file or a folder is mounted at a second place, and makes it look so: only root may really do it."""
    (shutil.copytree if what.is_dir() else shutil.copyfile)(what, where)
    lines = ["1 0 8:1 / / rw - ext4 disk rw", f"2 1 8:1 {what} {where} rw - ext4 disk rw"]
    (lake.folder / "mountinfo").write_text("".join(f"{line}\n" for line in lines))
    monkeypatch.setattr(mounts, "_MOUNTS", str(lake.folder / "mountinfo"))


@pytest.mark.parametrize("inside", [False, True])
def test_what_another_table_imported_by_a_mount_of_one_file_stays(
    lake: RealLake, monkeypatch: pytest.MonkeyPatch, inside: bool
) -> None:
    lake.create("a")
    lake.create("b")
    lake.append("b", 1)
    data = home(lake, "a") / "data"
    imported(lake, "a", 7, data, data)
    other = (home(lake, "b") / "data" if inside else lake.folder) / "other.parquet"
    mounted(monkeypatch, lake, data / "imported-7.parquet", other)
    lake.table("b").add_files([f"file://{other}"])
    lake.overwrite("a", 2)
    lake.expire("a", blast_radius=1.0)
    assert (data / "imported-7.parquet").exists()


def test_what_was_moved_into_another_table_during_grace_and_mounted_back_stays(
    lake: RealLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create("a")
    lake.create("b")
    lake.append("b", 1)
    old, new = (home(lake, name) / "data" / "moved" for name in "ab")
    imported(lake, "a", 7, old, old)
    lake.overwrite("a", 2)
    waiting = lake.expire("a", blast_radius=1.0, grace="1s")
    old.rename(new)
    lake.table("b").add_files([f"file://{new}/imported-7.parquet"])
    mounted(monkeypatch, lake, new, old)
    dated(lake.firnline(), Clock(2_000)).purge(str(waiting.run.id))
    assert (old / "imported-7.parquet").exists()


def test_what_the_table_itself_needs_by_another_road_stays(lake: RealLake, tmp_path: Path) -> None:
    lake.create("a")
    os.symlink(home(lake, "a"), tmp_path / "road")
    imported(lake, "a", 7, home(lake, "a") / "data", home(lake, "a") / "data")
    lake.overwrite("a", 2)
    lake.table("a").add_files([f"file://{tmp_path}/road/data/imported-7.parquet"])
    lake.expire("a", blast_radius=1.0)
    assert lake.read("a") == [2, 7]


def test_a_neighbours_file_that_a_link_shows_inside_the_tables_own_folder_stays(lake: RealLake) -> None:
    lake.create("a")
    lake.create("b")
    lake.append("a", 1)
    lake.append("b", 3)
    theirs = home(lake, "b") / "data"
    imported(lake, "b", 7, theirs, theirs)
    os.symlink(theirs, home(lake, "a") / "data" / "inside")
    lake.table("a").add_files([f"file://{home(lake, 'a')}/data/inside/imported-7.parquet"])
    lake.overwrite("a", 2)
    lake.expire("a", blast_radius=1.0)
    assert lake.read("a") == [2]
    assert lake.read("b") == [3, 7]


def test_a_lake_behind_a_link_keeps_the_folders_of_others_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "mnt").symlink_to(tmp_path / "disk")
    with real_lake(tmp_path / "mnt", monkeypatch) as lake:
        lake.create("a")
        lake.append("a", 1)
        inner = f"{lake.table('a').location()}/data/inner"
        lake.catalog.create_table("db.b", lake.table("a").schema(), location=inner)
        lake.append("b", 3)
        theirs = Path(inner.removeprefix("file://")) / "data"
        imported(lake, "a", 7, theirs, theirs)
        work = lake.firnline().places.table_context("lake.db.a")
        holes = around(work, work.source.load(), everywhere=False).holes
        assert f"{inner}/" in holes
        assert f"file://{tmp_path}/disk/warehouse/db/a/data/inner/" in holes
        lake.overwrite("a", 2)
        lake.expire("a", blast_radius=1.0)
        assert lake.read("a") == [2]
        assert lake.read("b") == [3]
        assert (theirs / "imported-7.parquet").exists()
