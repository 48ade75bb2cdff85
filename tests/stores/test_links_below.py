"""Links below folders: each is seen at the next look, however soon it came, and quiet folders are read once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from firnline.stores import links_below, mounts
from firnline.stores.links_below import LinksBelow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table's folder with a file in a partition."""
    (tmp_path / "t" / "data" / "day=1").mkdir(parents=True)
    (tmp_path / "t" / "data" / "day=1" / "f.parquet").touch()
    return tmp_path / "t"


def looked(links: LinksBelow, *folders: Path, holes: tuple[Path, ...] = ()) -> str | None:
    return links.now()([f"file://{each}/" for each in folders], [f"file://{each}/" for each in holes])


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that were read; every folder counts as long unchanged."""
    found: list[str] = []
    scandir = os.scandir

    def counted(folder: str) -> object:
        found.append(folder)
        return scandir(folder)

    monkeypatch.setattr(links_below, "_SETTLED_NS", -(1 << 62))
    monkeypatch.setattr("firnline.stores.links_below.os.scandir", counted)
    return found


def in_its_place(file: Path, target: Path) -> None:
    link = file.with_suffix(".new")
    link.symlink_to(target)
    link.rename(file)


@pytest.mark.parametrize("place", ["data/day=1/f.parquet", "data/new", "data/day=1"])
def test_a_link_is_seen_that_comes_right_after_a_look(folder: Path, tmp_path: Path, place: str) -> None:
    links = LinksBelow()
    assert looked(links, folder) == ""
    if (folder / place).is_dir():
        (folder / place).rename(tmp_path / "moved")
    in_its_place(folder / place, tmp_path / "moved")
    assert looked(links, folder) not in ("", None)


def test_a_link_that_comes_at_once_is_seen_every_time(folder: Path, tmp_path: Path) -> None:
    """The clock of a disk has steps: what comes within one of them leaves the folder's time as it is."""
    links, seen = LinksBelow(), set[str | None]()
    for number in range(300):
        (folder / "data" / f"l{number}").symlink_to(tmp_path)
        seen.add(looked(links, folder))
    assert len(seen) == 300


def test_other_links_are_known_by_another_text_and_the_same_by_the_same(folder: Path, tmp_path: Path) -> None:
    (folder / "one").symlink_to(tmp_path)
    first = looked(LinksBelow(), folder)
    assert looked(LinksBelow(), folder) == first
    (folder / "one").rename(folder / "other")
    assert looked(LinksBelow(), folder) not in (first, "")


def test_quiet_folders_are_read_once_and_those_that_change_again(
    folder: Path, tmp_path: Path, reads: list[str]
) -> None:
    links = LinksBelow()
    assert looked(links, folder) == looked(links, folder) == ""
    assert sorted(reads) == sorted(map(str, (folder, folder / "data", folder / "data" / "day=1")))
    reads.clear()
    (folder / "data" / "day=1" / "link").symlink_to(tmp_path)
    assert looked(links, folder) != ""
    assert reads == [str(folder / "data" / "day=1")]


def test_of_too_many_folders_none_is_taken_for_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch, reads: list[str]
) -> None:
    monkeypatch.setattr(links_below, "_MOST_FOLDERS", 2)
    links = LinksBelow()
    assert looked(links, folder) == looked(links, folder) == ""
    assert len(reads) > 3
    (folder / "data" / "link").symlink_to(folder)
    assert looked(links, folder) != ""


def test_what_lies_in_another_tables_folder_is_that_tables(folder: Path, tmp_path: Path) -> None:
    (folder / "data" / "day=1" / "link").symlink_to(tmp_path)
    assert looked(LinksBelow(), folder, holes=(folder / "data" / "day=1",)) == ""


def test_a_mount_below_counts_as_a_link(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point = folder / "data" / "day=1" / "f.parquet"
    (tmp_path / "mountinfo").write_text(f"20 1 8:1 /elsewhere/g.parquet {point} rw - ext4 /dev/sda1 rw\n")
    monkeypatch.setattr(mounts, "_MOUNTS", str(tmp_path / "mountinfo"))
    assert looked(LinksBelow(), folder) not in ("", None)
    assert looked(LinksBelow(), folder, holes=(folder / "data",)) == ""


def test_a_folder_that_cannot_be_read_tells_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(folder: str) -> object:
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr("firnline.stores.links_below.os.scandir", refused)
    assert looked(LinksBelow(), folder) is None


def test_what_is_gone_or_in_no_local_folder_has_none(tmp_path: Path) -> None:
    assert looked(LinksBelow(), tmp_path / "gone") == ""
    assert LinksBelow().now()(["s3://bucket/t/"], []) == ""
