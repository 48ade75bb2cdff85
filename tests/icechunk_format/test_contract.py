"""Icechunk's repositories keep the contract of a format."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import pytest
import zarr

from firnline.testing.dated import copy_dated, date
from firnline.testing.formats import FormatContract, Make
from harness.lanes import by_lane

from .growing import SPECS, made, storage

MARK = {"nobody": {"knows": [1, None]}}
OWNED = ("snapshots", "manifests", "chunks", "transactions")


@dataclass(frozen=True)
class RealRepository:
    """A copy of a repository that Icechunk itself wrote. What it needs is what the library's own collection leaves."""

    folder: Path

    @property
    def location(self) -> str:
        return str(self.folder)

    @property
    def vital(self) -> tuple[str, ...]:
        repo = self.folder / "repo"
        named = [repo] if repo.exists() else [self.folder / "refs/branch.main/ref.json"]
        tip = [] if repo.exists() else [self.folder / "snapshots" / self.opened().lookup_branch("main")]
        return tuple(map(str, (*named, *tip)))

    def opened(self) -> Any:
        return icechunk.Repository.open(storage(self.folder))

    def needed(self) -> set[str]:
        judged = self.folder.with_name(f"{self.folder.name}-judged")
        shutil.copytree(self.folder, judged, dirs_exist_ok=True)
        RealRepository(judged).opened().garbage_collect(datetime.now(UTC) + timedelta(days=1))
        left = [path for each in OWNED for path in (judged / each).glob("*")]
        found = {str(self.folder / path.relative_to(judged)) for path in left}
        shutil.rmtree(judged)
        return found

    def mark(self) -> None:
        """Nothing is added: an object with fields that nobody knows is refused. Commits carry what users give them."""

    def marked(self) -> bool:
        repo = self.opened()
        lines = [repo.ancestry(branch=each) for each in repo.list_branches()]
        lines += [repo.ancestry(tag=each) for each in repo.list_tags()]
        return all(each.metadata == MARK for line in lines for each in line if each.parent_id is not None)


@pytest.fixture(scope="session", params=SPECS)
def written(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A repository with chunks of every snapshot, and some that several share; two branches and a tag."""
    folder = tmp_path_factory.mktemp("written") / "r"
    repo = made(storage(folder), request.param)
    commit(repo, "main", 0)
    commit(repo, "main", 1)
    repo.create_tag("old", repo.lookup_branch("main"))
    commit(repo, "main", 2)
    repo.create_branch("dev", repo.lookup_branch("main"))
    for number in (3, 4):
        commit(repo, "dev", number)
        commit(repo, "main", number + 10)
    for file in (each for each in folder.rglob("*") if each.is_file()):
        date(file, file.stat().st_mtime_ns / 1_000_000)  # copies are as old, however long other tests take
    return folder


def commit(repo: Any, branch: str, number: int) -> None:
    session = repo.writable_session(branch)
    group = zarr.open_group(session.store, mode="a")
    if "x" not in group:
        group.create_array("x", shape=(80,), chunks=(20,), dtype="f8")
    group["x"][20 * (number % 4) : 20 * (number % 4) + 20] = np.random.default_rng(number).random(20)
    session.commit(f"commit {number}", metadata=MARK)


class TestIcechunk(FormatContract):
    kit_name = "icechunk"
    every = by_lane(6, 12, 1)

    @pytest.fixture
    def make(self, written: Path) -> Make:
        def copied(folder: Path) -> RealRepository:
            shutil.copytree(written, folder, copy_function=copy_dated)
            return RealRepository(folder)

        return copied
