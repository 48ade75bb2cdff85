"""What lies around a repository: names, places and commands that other formats never met."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import icechunk
import pytest
import zarr

from firnline.cli.main import run
from firnline.errors import UnsupportedFormat
from firnline.formats.icechunk import names
from firnline.formats.registry import EveryFormat
from firnline.stores.objects import ObjectStores
from firnline.testing.dated import Clock
from firnline.testing.folder_process import FolderProcess

from .growing import SPECS, made, storage

LOOKALIKE = "weather#0123456789abcdef0123456789abcdef"


def line_of(folder: Path, commits: int = 4) -> list[str]:
    """Returns the snapshots of a new repository, the newest first."""
    repo = made(storage(folder), SPECS[0])
    for number in range(commits):
        session = repo.writable_session("main")
        zarr.open_group(session.store, mode="a").attrs["number"] = number
        session.commit(f"commit {number}")
    return [each.id for each in repo.ancestry(branch="main")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "weather"


@pytest.mark.parametrize("name", ["case #7", "fällig", "50%", "a/b", "a~b"])
def test_a_hold_that_the_library_would_not_see_is_not_made(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The library's own collection took what such a tag held, though a hold was said to be there."""
    line = line_of(folder)
    assert run(["hold", "add", str(folder), name, line[2]]) == 2
    assert "would hold nothing" in capsys.readouterr().err
    assert run(["hold", "list", str(folder)]) == 0
    assert "no holds" in capsys.readouterr().out
    assert run(["tag", "add", str(folder), name, line[2]]) == 2
    assert run(["hold", "add", str(folder), "case 7", line[2]]) == 0


@pytest.mark.sampled(32)
@pytest.mark.parametrize("sign", [chr(number) for number in range(32, 127)] + ["ü"])
def test_every_tag_whose_name_is_allowed_is_seen_by_the_library(small: Path, tmp_path: Path, sign: str) -> None:
    name = f"a{sign}b"
    if names.is_seen_tag(name):
        copy = tmp_path / "copy"
        shutil.copytree(small, copy)
        repo = icechunk.Repository.open(storage(copy))
        repo.create_tag(name, repo.lookup_branch("main"))
        assert name in repo.list_tags()
    else:
        assert not (sign.isascii() and sign.isalnum())


def test_what_a_hold_holds_outlives_the_librarys_own_collection(folder: Path) -> None:
    line = line_of(folder)
    assert run(["hold", "add", str(folder), "case 7 (of 9)", line[2]]) == 0
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    repo = icechunk.Repository.open(storage(folder))
    repo.expire_snapshots(tomorrow)
    repo.garbage_collect(tomorrow)
    assert (folder / names.SNAPSHOTS / line[2]).exists()
    assert not (folder / names.SNAPSHOTS / line[1]).exists()


def test_a_hold_on_an_expired_snapshot_promises_no_undo(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line, clock = line_of(folder), Clock()
    process = FolderProcess(clock=clock)
    process.expire(str(folder), older_than="2100-01-01T00:00:00Z", retain_last=1, blast_radius=1.0, grace="24h")
    clock.advance(25 * 3_600_000)
    (ended,) = process.resume(str(folder))
    assert ended.run.state == "committed"
    capsys.readouterr()
    assert run(["hold", "add", str(folder), "case", line[2]]) == 0
    said = capsys.readouterr().out
    assert "undo" not in said
    assert "other tools may collect them" in said


def test_a_repository_in_a_folder_called_like_a_version_is_refused_and_never_overlooked(tmp_path: Path) -> None:
    line_of(tmp_path / LOOKALIKE)
    formats = EveryFormat(ObjectStores())
    document = str(tmp_path / LOOKALIKE / "refs/branch.main/ref.json")
    with pytest.raises(UnsupportedFormat, match="is called like a version"):
        formats.table_of(document)
    line_of(tmp_path / "weather")  # the repository of which that would be a version
    with pytest.raises(UnsupportedFormat, match="is called like a version"):
        formats.table_of(document)
    assert run(["plan", str(tmp_path / LOOKALIKE)]) == UnsupportedFormat.exit_code


def test_a_repository_without_refs_stops_a_search_and_is_called_by_its_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line_of(folder)
    shutil.rmtree(folder / names.REFS)
    (folder / names.REPO).unlink(missing_ok=True)
    assert run(["orphans", str(folder), "--dry-run"]) == UnsupportedFormat.exit_code
    said = capsys.readouterr().err
    assert "is a snapshot of Icechunk" in said
    assert "cannot read" not in said


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_rows_that_cannot_be_told_are_refused_in_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ids here are no numbers. What an executor said of it came as a stack of calls."""
    line_of(folder)
    assert run(["sql", f"SELECT * FROM `{folder}`.snapshots"]) == UnsupportedFormat.exit_code
    assert "is not a number of 64 bits" in capsys.readouterr().err
