"""What counts as a repository, and what does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from firnline.errors import FirnlineError, NoSuchTable, UnreadableMetadata, UnsupportedFormat
from firnline.formats.icechunk.reading.detection import has_repository
from firnline.formats.icechunk.reading.repository import read_repository

from .repositories import STORE

SNAPSHOT = "1CECHNKREP0F1RSTCMT0"
REF = b'{"snapshot":"1CECHNKREP0F1RSTCMT0"}'


def laid(folder: Path, **files: bytes) -> str:
    for path, data in files.items():
        place = folder / path.replace("__", "/").replace("_dot_", ".")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return str(folder)


def test_repositories_of_both_versions_are_found(small: Path, recorded: list[Path]) -> None:
    assert has_repository(STORE, str(small))
    assert all(has_repository(STORE, str(folder)) for folder in recorded)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"repo": b""},
        {"repo": b"[remote]\nurl = somewhere\n"},
        {"refs__heads__main": b"0123"},
        {"refs__branch__ref_dot_json": REF},
        {"refs__tag_dot_v1__ref_dot_json": REF},
        {"refs__branch_dot_main__ref_dot_json_dot_deleted": b""},
        {"snapshots__" + SNAPSHOT: b"x"},
        {"config_dot_yaml": b"storage: null\n"},
        {"snapshot__snapshot-1": b"{}", "schema__schema-0": b"{}"},
        {"metadata__v1_dot_metadata_dot_json": b"{}"},
        {"data__repo": b"x"},
    ],
)
def test_other_folders_are_none(tmp_path: Path, files: dict[str, bytes]) -> None:
    location = laid(tmp_path, **files)
    assert not has_repository(STORE, location)
    with pytest.raises((NoSuchTable, UnreadableMetadata, UnsupportedFormat)):
        read_repository(STORE, location)


def test_a_damaged_repo_among_snapshots_is_one_that_cannot_be_read(recorded: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "r"
    shutil.copytree(recorded[0], folder)
    data = (folder / "repo").read_bytes()
    (folder / "repo").write_bytes(b"X" + data[1:])
    assert has_repository(STORE, str(folder))
    with pytest.raises(UnreadableMetadata, match=r"history is damaged: .*/repo: it does not begin"):
        read_repository(STORE, str(folder))


def test_a_repo_of_a_later_version_is_not_understood(recorded: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "r"
    shutil.copytree(recorded[0], folder)
    data = bytearray((folder / "repo").read_bytes())
    data[36] = 3
    (folder / "repo").write_bytes(data)
    assert has_repository(STORE, str(folder))
    with pytest.raises(UnsupportedFormat, match=r"/repo: version 3"):
        read_repository(STORE, str(folder))


@pytest.mark.parametrize(
    ("path", "text", "error", "told"),
    [
        ("branch.main/ref.json", b"{", UnreadableMetadata, "branch.main/ref.json"),
        ("branch.main/ref.json", b'{"snapshot":"nope"}', UnreadableMetadata, "does not name a snapshot"),
        ("branch.main/ref.json", b'{"snapshot":"1cechnkrep0f1rstcmt0"}', UnreadableMetadata, "does not name"),
        ("branch.main/ref.json", b'{"snapshot":"1CECHNKREP0F1RSTCMT0","x":1}', UnreadableMetadata, "nothing else"),
        ("branch.main/ref.json", b'{"snapshot":"0000000000000000000G"}', UnreadableMetadata, "snapshot is missing"),
        ("branch.main/ZZZZ.json", REF, UnsupportedFormat, "lies among the refs"),
        ("branch.main/ref.json.deleted", b"", UnsupportedFormat, "lies among the refs"),
        ("heads/ref.json", REF, UnsupportedFormat, "lies among the refs"),
    ],
)
def test_strange_refs_are_refused_by_name(
    small: Path, tmp_path: Path, path: str, text: bytes, error: type[FirnlineError], told: str
) -> None:
    folder = tmp_path / "r"
    shutil.copytree(small, folder)
    place = folder / "refs" / path
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(text)
    with pytest.raises(error, match=told):
        read_repository(STORE, str(folder))


def test_a_file_that_is_not_yet_renamed_to_a_ref_is_none(small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    shutil.copytree(small, folder)
    (folder / "refs" / "branch.main" / "ref.json#2").write_bytes(b"{")
    assert read_repository(STORE, str(folder)).branches == read_repository(STORE, str(small)).branches


def test_a_repository_without_its_main_branch_is_damaged(small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    shutil.copytree(small, folder)
    (folder / "refs" / "branch.main" / "ref.json").rename(folder / "refs" / "branch.main" / "ref.json#0")
    (folder / "refs" / "branch.other").mkdir()
    (folder / "refs" / "branch.other" / "ref.json").write_bytes(REF)
    with pytest.raises(UnreadableMetadata, match="has no branch main"):
        read_repository(STORE, str(folder))


def test_a_link_among_the_refs_is_refused(small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    shutil.copytree(small, folder)
    (folder / "refs" / "branch.linked").symlink_to(folder / "refs" / "branch.main")
    with pytest.raises(UnsupportedFormat, match=r"branch\.linked is a link"):
        read_repository(STORE, str(folder))


def test_refs_that_are_a_link_to_anothers_are_refused(small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    shutil.copytree(small, folder)
    shutil.rmtree(folder / "refs")
    (folder / "refs").symlink_to(small / "refs")
    with pytest.raises(UnsupportedFormat, match="refs is a link"):
        read_repository(STORE, str(folder))
