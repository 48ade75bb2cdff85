"""One file, two roads: links and mounts by which a needed file has another path than the one that is listed."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from firnline.errors import RefusedForSafety
from firnline.model.times import HOUR_MS
from firnline.ports.listings import ObjectClass
from firnline.stores import mounts
from firnline.stores.real_paths import RealPaths
from harness.crowds import Crowd
from harness.disks import local
from harness.writers import Writer
from tests.orphans.conftest import Purge


def named(crowd: Crowd, writer: Writer, spelled: str, path: Path) -> None:
    """Commits a data file that lies at `path` by the name `spelled`."""
    item = writer.data_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    os.rename(local(item.path), path)
    crowd.ledger.contents[spelled] = crowd.ledger.contents[item.path]
    crowd.ledger.items[spelled] = replace(item, path=spelled)
    writer.commit("append", [crowd.ledger.items[spelled]])
    crowd.age(crowd.folder / "lake")


def link(crowd: Crowd, name: str, target: str) -> None:
    (crowd.folder / "lake" / name).symlink_to(crowd.folder / "lake" / target)


@pytest.mark.parametrize("into", ["searched/data", "searched"])
def test_a_neighbours_file_behind_a_link_stops_the_search(crowd: Crowd, purge: Purge, into: str) -> None:
    crowd.table("searched")
    neighbour = crowd.table("neighbour")
    link(crowd, "road", into)
    below = "imported.parquet" if into.endswith("data") else "data/imported.parquet"
    named(crowd, neighbour, f"{crowd.lake}/road/{below}", crowd.folder / "lake/searched/data/imported.parquet")
    with pytest.raises(RefusedForSafety, match="imported") as refused:
        purge("searched")
    assert "`same=[" in refused.value.hint
    plan, _ = purge("searched", keep_near_misses=True)
    assert plan.classes[ObjectClass.NEAR_MISS].files == 1
    crowd.check()


@pytest.mark.parametrize("into", ["searched/data", "searched"])
def test_a_road_that_the_operator_says_is_the_searched_folder_leaves_nothing_for_it(
    crowd: Crowd, purge: Purge, into: str
) -> None:
    """As the hint of the refusal above has it: the place that was listed, and then the one that is needed."""
    crowd.table("searched")
    neighbour = crowd.table("neighbour")
    link(crowd, "road", into)
    below = "imported.parquet" if into.endswith("data") else "data/imported.parquet"
    named(crowd, neighbour, f"{crowd.lake}/road/{below}", crowd.folder / "lake/searched/data/imported.parquet")
    stray = crowd.stray("searched/data/left.parquet")
    plan, _ = purge("searched", same=[(f"{crowd.lake}/{into}", f"{crowd.lake}/road")])
    assert (plan.victims.all.files, plan.classes[ObjectClass.OUTSIDE].files) == (1, 0)
    assert stray not in crowd.files()
    crowd.check()


def test_a_link_inside_the_neighbours_own_folder_stops_the_search(crowd: Crowd, purge: Purge) -> None:
    crowd.table("searched")
    neighbour = crowd.table("neighbour")
    link(crowd, "neighbour/data/inside", "searched/data")
    spelled = f"{crowd.lake}/neighbour/data/inside/imported.parquet"
    named(crowd, neighbour, spelled, crowd.folder / "lake/searched/data/imported.parquet")
    with pytest.raises(RefusedForSafety, match="imported"):
        purge("searched")
    crowd.check()


def test_a_table_that_is_searched_by_a_link_knows_its_files(crowd: Crowd, purge: Purge) -> None:
    """The same table in two catalogs, one of which has it by a link: all that either needs is there."""
    crowd.table("t", inside="real")
    link(crowd, "road", "real")
    crowd.table("linked", inside="road/data/inner")
    stray = crowd.stray("real/data/left.parquet")
    with pytest.raises(RefusedForSafety):
        purge("t")
    assert stray in crowd.files()
    crowd.check()


def test_a_lake_behind_a_link_is_searched_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "mnt").symlink_to(tmp_path / "disk")
    crowd = Crowd.make(tmp_path / "mnt")
    crowd.table("t")
    crowd.table("other")
    stray = crowd.stray("t/data/left.parquet")
    plan, _ = crowd.process().orphans(crowd.name("t"), grace="0s", consent=lambda plan: True)
    assert plan.victims.all.files == 1
    assert stray not in crowd.files()
    crowd.check()


def test_a_neighbours_link_to_one_file_stops_the_search(crowd: Crowd, purge: Purge) -> None:
    crowd.table("searched")
    neighbour = crowd.table("neighbour")
    path = crowd.folder / "lake/searched/data/imported.parquet"
    link(crowd, "neighbour/data/other.parquet", "searched/data/imported.parquet")
    named(crowd, neighbour, f"{crowd.lake}/neighbour/data/other.parquet", path)
    with pytest.raises(RefusedForSafety, match="imported"):
        purge("searched")
    plan, _ = purge("searched", keep_near_misses=True)
    assert plan.classes[ObjectClass.NEAR_MISS].files == 1
    crowd.check()


def test_a_link_that_nobody_needs_stays_as_outside(crowd: Crowd, purge: Purge) -> None:
    """What it leads to is another file, and who goes through the link is not known."""
    crowd.table("searched")
    crowd.stray("elsewhere/left.parquet")
    link(crowd, "searched/data/link.parquet", "elsewhere/left.parquet")
    stray = crowd.stray("searched/data/left.parquet")
    plan, _ = purge("searched")
    assert (plan.classes[ObjectClass.OUTSIDE].files, plan.victims.all.files) == (1, 1)
    assert (crowd.folder / "lake/searched/data/link.parquet").is_symlink()
    assert stray not in crowd.files()


@pytest.mark.parametrize("road", ["a folder", "one file"])
def test_a_file_that_is_taken_up_by_another_road_during_grace_is_spared(crowd: Crowd, road: str) -> None:
    crowd.table("searched")
    neighbour = crowd.table("neighbour")
    stray = crowd.stray("searched/data/taken.parquet")
    link(crowd, "road", "searched/data" if road == "a folder" else "searched/data/taken.parquet")
    _, waiting = crowd.process().orphans(crowd.name("searched"), grace="1h", consent=lambda plan: True)
    item = neighbour.data_file()
    taken = f"{crowd.lake}/road/taken.parquet" if road == "a folder" else f"{crowd.lake}/road"
    crowd.ledger.contents[taken] = crowd.ledger.contents[item.path]
    neighbour.commit("append", [replace(item, path=taken)])
    crowd.clock.advance(2 * HOUR_MS)
    crowd.later().purge(waiting.id)
    assert stray in crowd.files()


def test_a_file_that_a_link_in_the_place_of_a_needed_one_leads_to_during_grace_is_spared(crowd: Crowd) -> None:
    searched = crowd.table("searched")
    stray = crowd.stray("searched/data/left.parquet")
    needed = Path(local(min(each.path for each in searched.live())))
    _, waiting = crowd.process().orphans(crowd.name("searched"), grace="1h", consent=lambda plan: True)
    needed.unlink()
    needed.symlink_to("left.parquet")
    crowd.clock.advance(2 * HOUR_MS)
    crowd.later().purge(waiting.id)
    assert stray in crowd.files()


# ---------------------------------------------------------------- the names themselves


def test_names_are_real_and_looked_up_by_folder(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "road").symlink_to(tmp_path / "a")
    real = RealPaths()
    names = [
        f"file://{tmp_path}/road/b/x",
        f"file://{tmp_path}/a/b/y",
        "s3://bucket/road/b/z",
        f"file://{tmp_path}/no/w",
    ]
    found = real.column(pa.array(names)).to_pylist()
    assert found == [f"file://{tmp_path}/a/b/x", *names[1:]]
    assert found == [real(each) for each in names]
    travelled = pickle.loads(pickle.dumps(RealPaths((f"file://{tmp_path}/road",))))
    assert travelled(names[0]) == names[0]
    assert travelled(names[1]) == f"file://{tmp_path}/road/b/y"


@pytest.mark.parametrize("others", [0, 100])
def test_a_link_to_a_file_is_the_file(tmp_path: Path, others: int) -> None:
    """Through a chain, too; of few names each is looked at, of many their folders."""
    for folder in ("a", "b/c"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "a/f").write_text("")
    (tmp_path / "b/middle").symlink_to("../a/f")
    (tmp_path / "b/first").symlink_to(tmp_path / "b/middle")
    (tmp_path / "b/nowhere").symlink_to("nothing")
    (tmp_path / "b/folder").symlink_to("c")
    os.symlink("x", os.fsencode(tmp_path) + b"/b/\xff")
    expected = {"a/f": "a/f", "b/middle": "a/f", "b/first": "a/f", "b/nowhere": "b/nothing", "b/c/x": "b/c/x"}
    expected |= {"b/folder/x": "b/c/x"} | {f"b/{number}": f"b/{number}" for number in range(others)}
    names, found = ([f"file://{tmp_path}/{each}" for each in some] for some in (expected, expected.values()))
    real = RealPaths()
    assert real.column(pa.array(names)).to_pylist() == found == [real(each) for each in names]
    assert [real.has_links(f"file://{tmp_path}/{each}") for each in ("a/", "b/", "b/c/", "no/")] == [0, 1, 0, 0]
    plain = pa.array([each for each, other in zip(names, found, strict=True) if each == other])
    assert real.column(plain) is plain


def test_links_in_a_folder_that_may_not_be_read_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name in it can be walked through all the same. Whoever runs as root may read all."""
    for folder in ("shut", "open"):
        (tmp_path / folder).mkdir()
    (tmp_path / "shut/link").symlink_to(tmp_path / "open/f")
    names = [f"file://{tmp_path}/shut/{each}" for each in ("link", *map(str, range(100)))]

    def refuse(path: str) -> object:
        raise PermissionError(13, "Permission denied")

    real = RealPaths()
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", refuse)
        assert real.column(pa.array(names)).to_pylist() == [f"file://{tmp_path}/open/f", *names[1:]]
        assert real.has_links(f"file://{tmp_path}/shut/")


def test_links_are_looked_for_again_once_they_are_forgotten(tmp_path: Path) -> None:
    names = pa.array([f"file://{tmp_path}/{each}" for each in range(100)])
    real = RealPaths()
    assert real.column(names) is names
    (tmp_path / "7").symlink_to("other")
    real.forget()
    assert real.column(names).to_pylist()[7] == f"file://{tmp_path}/other"


def test_a_folder_that_is_mounted_twice_has_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "1 0 8:1 / / rw - ext4 disk rw",
        "2 1 8:1 /srv/lake /mnt/lake rw - ext4 disk rw",
        "3 1 8:1 /srv/lake/t /mnt/a\\040b rw - ext4 disk rw",
        "4 1 0:5 / /proc rw - proc proc rw",
        "5 1 9:9 /one /x rw - ext4 other rw",
        "6 1 9:9 /one/two /y rw - ext4 other rw",
    ]
    (tmp_path / "mountinfo").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(mounts, "_MOUNTS", str(tmp_path / "mountinfo"))
    real = RealPaths()
    assert real("file:///mnt/lake/t/data/x") == "file:///srv/lake/t/data/x"
    assert real("file:///mnt/a b/data/x") == "file:///srv/lake/t/data/x"
    assert real("file:///srv/lake/t/data/x") == "file:///srv/lake/t/data/x"
    assert real("file:///proc/x/y") == "file:///proc/x/y"
    assert real("file:///y/z/f") == "file:///x/two/z/f"
    assert real("file:///y/f") == "file:///x/two/f"
    assert real("file:///f") == "file:///f"


@pytest.mark.parametrize("others", [0, 100])
def test_a_file_that_is_mounted_at_a_second_place_has_one_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    for each in ("a/f", "b/other", "b/f"):
        (tmp_path / each).parent.mkdir(exist_ok=True)
        (tmp_path / each).write_text("")
    (tmp_path / "road").symlink_to("b")
    (tmp_path / "link").symlink_to("road/other")
    real = RealPaths()
    assert real(f"file://{tmp_path}/b/other") == f"file://{tmp_path}/b/other"
    lines = ["1 0 8:1 / / rw - ext4 disk rw", f"2 1 8:1 {tmp_path}/a/f {tmp_path}/b/other rw - ext4 disk rw"]
    (tmp_path / "mountinfo").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(mounts, "_MOUNTS", str(tmp_path / "mountinfo"))
    real.forget()
    expected = {"b/other": "a/f", "road/other": "a/f", "link": "a/f", "b/f": "b/f", "a/other": "a/other"}
    expected |= {f"b/{number}": f"b/{number}" for number in range(others)}
    names, found = ([f"file://{tmp_path}/{each}" for each in some] for some in (expected, expected.values()))
    assert real.column(pa.array(names)).to_pylist() == found == [real(each) for each in names]
    assert [real.has_links(f"file://{tmp_path}/{each}") for each in ("a/", "b/")] == [False, True]
