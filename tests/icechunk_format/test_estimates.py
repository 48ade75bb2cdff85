"""How large a walk will be is told from a few snapshots, so that a large one goes to Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import zarr

from firnline.formats.icechunk.reading.repository import read_repository
from firnline.formats.icechunk.walking.roots import entries_of
from firnline.testing.counting import Counting

from .growing import SPECS, made, storage
from .repositories import STORE, needed

CHUNKS = 50


def grown(folder: Path, commits: int, *, rewrites: bool) -> None:
    """Makes a repository of one array, which each commit changes; or of which only the first writes anything."""
    repo = made(storage(folder), SPECS[0])
    for number in range(commits):
        session = repo.writable_session("main")
        group = zarr.open_group(session.store, mode="a")
        array: Any = group["x"] if number else group.create_array("x", shape=(CHUNKS * 10,), chunks=(10,), dtype="i8")
        if rewrites or not number:
            array[:] = number + 1
        group.attrs["count"] = number
        session.commit(f"commit {number}")


def test_manifests_that_every_commit_writes_anew_all_count(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    grown(folder, 30, rewrites=True)
    found = read_repository(STORE, str(folder))
    every = needed(str(folder), set(found.snapshots)).manifests.values()
    real = sum(each.refs or 0 for each in every)
    assert real == 30 * CHUNKS
    counting = Counting(STORE)
    assert 0.8 * real <= entries_of(counting, found) <= 1.2 * real
    assert len(list(counting.calls())) <= 8


def test_a_manifest_that_all_share_counts_about_once(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    grown(folder, 30, rewrites=False)
    found = read_repository(STORE, str(folder))
    assert CHUNKS <= entries_of(STORE, found) <= 6 * CHUNKS
