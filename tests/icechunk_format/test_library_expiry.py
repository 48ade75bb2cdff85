"""What the installed library's own expiry does to random repositories is what was told beforehand.

The library takes times from its own clock, so a threshold here is the time of some snapshot, which it does not expire.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import icechunk
import pytest
import zarr

from firnline.formats.icechunk.expiring.ancestry import RefHistory, survivors_since
from firnline.formats.icechunk.expiring.expressing import refusals, threshold_for
from firnline.formats.icechunk.expiring.rewriting import Manner, Rewriting, rewritten
from firnline.formats.icechunk.reading.repository import read_repository
from firnline.model.snapshots import MAIN, Ref, RefKind
from harness.lanes import by_lane

from .growing import SPECS, made, storage
from .histories import lines_of
from .repositories import STORE, lying

SEEDS = range(by_lane(6, 20, 450))
DELETED: list[set[RefKind]] = [set(), {RefKind.TAG}, set(RefKind)]
MANNERS = {1: Manner.VERSION_1, 2: Manner.VERSION_2}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Commits:
    """A repository that grows by empty commits, branches, tags and resets."""

    folder: Path
    repo: Any
    choice: random.Random
    count: int = 0

    def commit(self, branch: str) -> str:
        self.count += 1
        session = self.repo.writable_session(branch)
        zarr.open_group(session.store, mode="a").attrs["count"] = self.count
        return str(session.commit(f"commit {self.count}"))

    def step(self) -> None:
        branches = sorted(self.repo.list_branches())
        branch = self.choice.choice(branches)
        line = [each.id for each in self.repo.ancestry(branch=branch)]
        what = self.choice.random()
        if what < 0.6:
            self.commit(branch)
        elif what < 0.75:
            self.repo.create_branch(f"branch-{len(branches)}-{len(line)}-{what}", self.choice.choice(line))
        elif what < 0.92:
            self.repo.create_tag(f"tag-{what}", self.choice.choice(line))
        else:
            self.repo.reset_branch(branch, self.choice.choice(line))

    def history(self) -> RefHistory:
        return RefHistory.of(read_repository(STORE, str(self.folder)))

    def lines(self) -> dict[tuple[str, str], list[str]]:
        """Returns what the library, opened anew, says of every ref."""
        repo = icechunk.Repository.open(storage(self.folder))
        branches = {("branch", name): repo.ancestry(branch=name) for name in repo.list_branches()}
        tags = {("tag", name): repo.ancestry(tag=name) for name in repo.list_tags()}
        return {ref: [each.id for each in line] for ref, line in {**branches, **tags}.items()}


def grown(folder: Path, seed: int, spec: int) -> Commits:
    found = Commits(folder, made(storage(folder), spec), random.Random(seed))
    for _ in range(found.choice.randint(5, 22)):
        found.step()
    return found


def expired(commits: Commits, threshold_us: int, delete: set[RefKind]) -> set[str]:
    """Returns what the library says that it released."""
    released: set[str] = commits.repo.expire_snapshots(
        EPOCH + timedelta(microseconds=threshold_us),
        delete_expired_branches=RefKind.BRANCH in delete,
        delete_expired_tags=RefKind.TAG in delete,
    )
    return released


def returned(before: RefHistory, survivors: set[str], told: Rewriting, spec: int) -> set[str]:
    """Returns what the library calls released: not what dangles.

    Version 1 names all that expired on a line in which it edited something, with what refs still lead to, and the very
    snapshots that they point to. Version 2 names what it lists no longer, with what no ref led to before.
    """
    if spec == 2:
        return set(before.snapshots.keys() - told.after.snapshots.keys())
    lines = [list(before.line(ref.snapshot))[:-1] for ref in before.refs]
    return {each for line in lines if told.parents.keys() & set(line) for each in line if each not in survivors}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_library_does_what_was_told(tmp_path: Path, seed: int, spec: int) -> None:
    commits, delete = grown(tmp_path / "r", seed, spec), DELETED[seed % 3]
    before = commits.history()
    moment = commits.choice.choice(sorted(each.flushed_us for each in before.snapshots.values()))
    threshold = moment + commits.choice.choice([0, 0, 1])
    survivors = survivors_since(before, threshold)
    assert refusals(before, survivors) == []
    least = survivors_since(before, threshold_for(before, survivors))
    assert {each for each in least ^ survivors if before.snapshots[each].parent} == set()
    told = rewritten(before, survivors, MANNERS[spec], delete)

    assert expired(commits, threshold, delete) == returned(before, survivors, told, spec)
    assert commits.lines() == lines_of(told.after)
    after = commits.history()
    assert set(after.refs) == set(told.after.refs)
    kept = told.after.snapshots if spec == 2 else told.after.without(told.dangling).snapshots
    assert {name: each.parent for name, each in after.snapshots.items()} == {
        name: each.parent for name, each in kept.items()
    }
    commits.repo.garbage_collect(datetime.now(UTC) + timedelta(days=1))
    assert lying(commits.folder, "snapshots") == told.after.reachable()


@pytest.mark.sampled(20)
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("seed", SEEDS)
def test_where_the_library_and_the_design_differ(tmp_path: Path, seed: int, spec: int) -> None:
    """A ref whose snapshot did not expire sees the same as designed; on version 2 perhaps snapshots more, to which
    other refs point. An expired one keeps its old view as designed, and does not with the library.
    """
    commits = grown(tmp_path / "r", seed, spec)
    before = commits.history()
    threshold = commits.choice.choice(sorted(each.flushed_us for each in before.snapshots.values()))
    survivors = survivors_since(before, threshold)
    designed = rewritten(before, survivors)
    expired(commits, threshold, set())
    found, pointed = commits.lines(), {ref.snapshot for ref in before.refs}
    for ref, line in lines_of(designed.after).items():
        if line[0] not in survivors:
            assert set(found[ref]) <= set(line)
            assert spec == 2 or found[ref] == list(dict.fromkeys((line[0], line[-1])))
        else:
            assert [each for each in found[ref] if each in line] == line
            assert spec == 2 or found[ref] == line
            assert set(found[ref]) - set(line) <= pointed


@pytest.mark.parametrize("spec", SPECS)
def test_expired_refs_of_every_kind(tmp_path: Path, spec: int) -> None:
    """A threshold after everything: only what refs point to stays, and on version 1 not even a tag of the root."""
    commits = Commits(tmp_path / "r", made(storage(tmp_path / "r"), spec), random.Random(0))
    root = commits.repo.lookup_branch(MAIN)
    snapshots = [commits.commit(MAIN) for _ in range(3)]
    commits.repo.create_tag("first", root)
    commits.repo.create_tag("middle", snapshots[1])
    commits.repo.create_branch("same", snapshots[2])
    before = commits.history()
    threshold = 1 + max(each.flushed_us for each in before.snapshots.values())
    told = rewritten(before, set(), MANNERS[spec], set(RefKind))
    expired(commits, threshold, set(RefKind))
    assert commits.lines() == lines_of(told.after)
    stays = [Ref(MAIN, RefKind.BRANCH, snapshots[2])] + ([Ref("first", RefKind.TAG, root)] if spec == 2 else [])
    assert set(told.after.refs) == set(stays)
    assert commits.lines()["branch", MAIN] == [snapshots[2], root]
