"""Sessions of the real library that wrote chunks and did not commit yet, while firnline searches, expires and purges.

What a session leaves before its commit: an object for each chunk, at once; a flush leaves manifest, snapshot and log,
too. No ref leads to any of it. A commit is a flush, and then the ref moves.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import combinations_with_replacement

import icechunk
import pytest

from firnline.errors import FirnlineError
from firnline.formats.icechunk import names
from firnline.model.times import DAY_MS, HOUR_MS
from firnline.policy.values import SHORTEST_WRITE_MS
from firnline.testing.faults import Acting, CountingFault, Fault
from harness.lanes import by_lane

from .open_writing import (
    COMMIT,
    GRACE,
    LITTER,
    OpenWriter,
    Scene,
    arrays,
    commit,
    flush,
    is_version_2,
    objects,
    opened,
    outcome_of,
    put,
)

YOUNG_MS = SHORTEST_WRITE_MS - 3 * HOUR_MS
OLD_MS = 10 * DAY_MS
SEEDS = range(by_lane(1, 1, 100))
SAMPLES = by_lane(3, 3, 1000)


# ---------------------------------------------------------------- between the steps of a writer


@pytest.mark.sampled(2)
@pytest.mark.parametrize("age_ms", [0, YOUNG_MS])
@pytest.mark.parametrize("at", range(COMMIT + 1))
def test_a_search_before_each_step(scene: Scene, at: int, age_ms: int) -> None:
    """The cutoff is forced beyond the session's start: whatever was asked for, a day is left to every writer."""
    writer = OpenWriter(scene.folder, age_ms)
    writer.run(range(at))
    plan, ended = scene.search()
    assert ended.state == "done"
    assert not scene.litter & objects(scene.folder)
    assert plan.victims.all.files == LITTER
    writer.run(range(at, COMMIT + 1))
    writer.is_whole()
    scene.is_sound()


def test_the_usual_cutoff_leaves_three_days(scene: Scene) -> None:
    writer = OpenWriter(scene.folder, 3 * DAY_MS - HOUR_MS)
    writer.run(range(COMMIT))
    scene.search(older_than=None)
    assert not scene.litter & objects(scene.folder)
    writer.step(COMMIT)
    writer.is_whole()


def test_the_floor_is_what_protects(scene: Scene) -> None:
    """This very search takes what is an hour older than the floor: the tests above can fail."""
    writer = OpenWriter(scene.folder, SHORTEST_WRITE_MS + HOUR_MS)
    writer.run(range(COMMIT))
    scene.search()
    assert writer.own
    assert not writer.own & objects(scene.folder)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("age_ms", [0, YOUNG_MS])
def test_a_search_and_its_purge_at_any_two_steps(copies: Callable[[], Scene], age_ms: int) -> None:
    every = list(combinations_with_replacement(range(COMMIT + 2), 2))
    some = every[1::3]  # each step but the last comes before a search, and each but two before a purge
    for found_at, purged_at in by_lane(some, some, every):
        scene = copies()
        writer = OpenWriter(scene.folder, age_ms)
        writer.run(range(found_at))
        scene.search(grace=GRACE)
        writer.run(range(found_at, purged_at))
        (ended,) = scene.go_on()
        assert ended.state == "done"
        assert not scene.litter & objects(scene.folder)
        writer.run(range(purged_at, COMMIT + 1))
        writer.is_whole()


@pytest.mark.full
def test_plan_commit_and_purge_of_an_expiry_at_any_steps(copies: Callable[[], Scene]) -> None:
    """The session's base is the branch's tip, which an expiry edits in place and never takes."""
    places = list(combinations_with_replacement(range(COMMIT + 2), 3))
    taken = 0
    for planned_at, committed_at, purged_at in random.Random(0).sample(places, min(len(places), 2 * SAMPLES)):
        scene = copies()
        writer = OpenWriter(scene.folder)
        writer.run(range(planned_at))
        scene.plan()
        writer.run(range(planned_at, committed_at))
        scene.go_on()
        writer.run(range(committed_at, purged_at))
        before = objects(scene.folder)
        scene.go_on()
        taken += objects(scene.folder) < before
        writer.run(range(purged_at, COMMIT + 1))
        writer.is_whole()
        scene.is_sound()
    assert taken > 1


# ---------------------------------------------------------------- others commit too


@pytest.mark.parametrize("expire_before_others", [True, False])
def test_a_session_rebases_over_an_expiry(copies: Callable[[], Scene], expire_before_others: bool) -> None:
    """Its base is older than the cutoff and kept by its place: it ends as it would have without firnline."""
    results = []
    for scene, with_firnline in ((copies(), True), (copies(), False)):
        writer = OpenWriter(scene.folder)
        writer.run(range(3))
        if with_firnline and expire_before_others:
            scene.plan(retain_last=3)
            scene.go_on()
        for number in range(2):
            commit(scene.folder, 6 + number, 50 + number)
        if with_firnline:
            if not expire_before_others:
                scene.plan(retain_last=3)
                scene.go_on()
            assert [each.state for each in scene.go_on()] == ["done"]
            scene.search()
        writer.run(range(3, COMMIT + 1))
        writer.is_whole()
        results.append(arrays(scene.folder))
    assert results[0] == results[1]


def test_a_session_whose_base_was_expired(copies: Callable[[], Scene]) -> None:
    """Version 1 of the library refuses its commit, as it does after the library's own expiry; version 2 makes it.
    Nothing of anybody is lost.
    """
    ends, left = [], []
    for scene, by_firnline in ((copies(), True), (copies(), False)):
        writer = OpenWriter(scene.folder)
        writer.run(range(COMMIT))
        commit(scene.folder, 6, 50)
        before = arrays(scene.folder)
        if by_firnline:
            scene.plan()
            scene.go_on()
            scene.go_on()
            scene.search()
            assert not (scene.folder / names.SNAPSHOTS / writer.session.snapshot_id).exists()
        else:
            opened(scene.folder).expire_snapshots(datetime.now(UTC) + timedelta(days=1))
        ends.append([outcome_of(partial(writer.session.commit, "plain")), outcome_of(writer.commit)])
        assert writer.own <= objects(scene.folder)
        left.append(arrays(scene.folder))
        assert left[-1] == before if all(ends[-1]) else left[-1]["y0"] == writer.values["y0"]
        again = OpenWriter(scene.folder, number=1)
        again.run(range(COMMIT + 1))
        assert arrays(scene.folder)["y1"] == again.values["y1"]
        scene.is_sound()
    assert (ends[0], left[0]) == (ends[1], left[1])
    assert all(ends[0]) or is_version_2(scene)


def test_a_branch_is_made_of_an_expired_snapshot_before_the_purge(scene: Scene) -> None:
    """What it needs is spared, and what its session writes stays. Version 2 knows an expired snapshot no more."""
    expired = [each.id for each in opened(scene.folder).ancestry(branch="main")][2]
    scene.plan()
    scene.go_on()
    if is_version_2(scene):
        with pytest.raises(icechunk.IcechunkError):
            opened(scene.folder).create_branch("again", expired)
        return
    opened(scene.folder).create_branch("again", expired)
    wanted = arrays(scene.folder, "again")["x"]
    session = opened(scene.folder).writable_session("again")
    put(session, "x", 7, 33)
    with suppress(FirnlineError):
        scene.go_on()
    session.commit("on an expired snapshot")
    assert arrays(scene.folder, "again")["x"] == [*wanted[:70], *[33] * 10]
    scene.is_sound()


# ---------------------------------------------------------------- flushed, and the ref moves later


@pytest.mark.parametrize("age_ms", [0, YOUNG_MS])
def test_a_search_between_a_flush_and_the_ref(scene: Scene, age_ms: int) -> None:
    writer = OpenWriter(scene.folder, age_ms)
    writer.run(range(COMMIT))
    flushed = flush(writer)
    scene.search()
    opened(scene.folder).reset_branch("main", flushed)
    writer.is_whole()


@pytest.mark.parametrize("act", ["commit", "flush"])
def test_an_old_session_commits_between_search_and_purge(scene: Scene, act: str) -> None:
    """All that it left was found as garbage, but for what version 2 lists. The repository is read again before anything
    goes.
    """
    writer = OpenWriter(scene.folder, OLD_MS)
    writer.run(range(COMMIT))
    flushed = flush(writer) if act == "flush" else None
    plan, _ = scene.search(grace=GRACE)
    assert plan.victims.all.files >= (LITTER if flushed and is_version_2(scene) else LITTER + 3)
    if flushed is None:
        writer.step(COMMIT)
    else:
        opened(scene.folder).reset_branch("main", flushed)
    with suppress(FirnlineError):
        scene.go_on()
    writer.is_whole()


# ---------------------------------------------------------------- in the middle of a run


def places_of(requests: int) -> list[int]:
    return sorted(random.Random(1).sample(range(1, requests + 1), min(requests, SAMPLES)))


@dataclass
class Commits:
    """A session that was open all the time commits, in the middle of something."""

    writer: OpenWriter
    done: bool = False

    def __call__(self) -> None:
        self.writer.step(COMMIT)
        self.done = True


def deletes_among(trace: list[tuple[str, str]]) -> list[int]:
    return [at for at, (verb, _) in enumerate(trace, 1) if verb == "delete"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("act", ["search", "expire"])
def test_a_commit_at_any_request(copies: Callable[[], Scene], act: str) -> None:
    """Between any two requests, so between any two files of a purge and any two parts of its list."""

    def carried(scene: Scene, fault: Fault) -> None:
        if act == "search":
            scene.search(fault)
        else:
            scene.plan(fault)
            scene.go_on(fault)
            scene.go_on(fault)

    counting, first = CountingFault(), copies()
    OpenWriter(first.folder, YOUNG_MS).run(range(COMMIT))
    carried(first, counting)
    deletes = deletes_among(counting.trace)
    assert len(deletes) >= LITTER
    for at in [*places_of(counting.requests), *deletes[:: max(1, len(deletes) // SAMPLES)]]:
        scene = copies()
        writer = OpenWriter(scene.folder, YOUNG_MS)
        writer.run(range(COMMIT))
        commits = Commits(writer)
        with suppress(FirnlineError):
            carried(scene, Acting(at, commits))
        if not commits.done:  # the run ended with fewer requests
            commits()
        writer.is_whole()
        scene.is_sound()


@dataclass
class Watching(Acting):
    """Acts as `Acting` does. `sighted` are the names of what was deleted after the repository was read again: `repo` is
    asked for, and then links are looked for. Whoever only wants to know whether there is a repository does the first.
    """

    sighted: set[str] = field(default_factory=set, init=False)
    _is_begun: bool = field(default=False, init=False)

    def _watch(self, verb: str, key: str) -> None:
        self._looked = self._looked or (self._is_begun and verb == "links")
        self._is_begun = self.before is not None and verb == "get" and key.endswith("/repo")
        if verb == "delete" and self._looked:
            self.sighted.add(os.path.basename(key))


def said_by(act: Callable[[], object]) -> FirnlineError | None:
    try:
        act()
    except FirnlineError as error:
        return error
    return None


@pytest.mark.full
def test_an_old_session_commits_at_any_request_of_a_search(copies: Callable[[], Scene]) -> None:
    """It is older than every cutoff. What was deleted before the refs were read again is gone, and firnline says so;
    nothing that was still there then goes.
    """
    first, counting = copies(), CountingFault()
    OpenWriter(first.folder, OLD_MS).run(range(COMMIT))
    first.search(counting)
    deletes = deletes_among(counting.trace)
    assert len(deletes) == LITTER + 3
    whole = 0
    for at in [*places_of(deletes[0] - 1), *deletes[1:]]:
        scene = copies()
        writer = OpenWriter(scene.folder, OLD_MS)
        writer.run(range(COMMIT))
        commits = Commits(writer)
        acting = Watching(at, commits)
        said = said_by(partial(scene.search, acting))
        assert commits.done
        lost = {path.name for path in writer.own - objects(scene.folder)}
        assert not lost & acting.sighted, at
        assert said is not None or not lost, at
        if not lost:
            writer.is_whole()
            whole += 1
    assert whole > 1


# ---------------------------------------------------------------- all at once


@pytest.mark.parametrize("seed", SEEDS)
def test_writers_and_runs_in_any_order(copies: Callable[[], Scene], seed: int) -> None:
    """Three sessions, searches and expiries, step by step in a random order; without firnline all ends the same."""
    results = []
    for scene, with_firnline in ((copies(), True), (copies(), False)):
        choice = random.Random(seed)
        writers = [OpenWriter(scene.folder, choice.choice([0, YOUNG_MS]), number) for number in range(3)]
        order = [number for number in range(3) for _ in range(COMMIT + 1)]
        acts = [scene.search, partial(scene.search, grace=GRACE), partial(scene.plan, retain_last=4), scene.go_on]
        order += [-1 - choice.randrange(len(acts)) for _ in range(12)]
        choice.shuffle(order)
        done = dict.fromkeys(range(3), 0)
        for each in order:
            if each >= 0:
                writers[each].step(done[each])
                done[each] += 1
            elif with_firnline:
                with suppress(FirnlineError):  # such as one run that waits for another
                    acts[-1 - each]()
        for writer in writers:
            writer.is_whole()
        results.append(arrays(scene.folder))
    assert results[0] == results[1]
