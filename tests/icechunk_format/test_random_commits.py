"""Commits to random repositories, whole and cut anywhere, end as they were foretold."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import icechunk
import pytest

from firnline.errors import RefusedForSafety
from firnline.formats.icechunk import names
from firnline.model.snapshots import MAIN, Ref, RefKind
from firnline.model.times import HOUR_MS
from firnline.ports.catalogs import Step, SwapOutcome
from firnline.testing.dated import date
from harness.lanes import by_lane

from .growing import SPECS, storage
from .repositories import lying, referenced
from .stepping import Countdown, CutStore, Died, Stepped, attempt_at, step_from
from .test_commits import is_done
from .test_library_expiry import grown

SEEDS = range(by_lane(6, 12, 300))


def grown_long_ago(folder: Path, seed: int, spec: int) -> Stepped:
    """Returns a random repository whose snapshots are an hour old for the store: on version 1 a young one that no ref
    leads to looks like a commit that was cut off with its branch, and stops every commit that deletes it.
    """
    made = Stepped(grown(folder, seed, spec), [])
    for path in (folder / names.SNAPSHOTS).iterdir():
        date(path, path.stat().st_mtime * 1000 - HOUR_MS)
    return made


def random_step(made: Stepped, choice: random.Random) -> Step:
    base = made.version()
    found = base.document["repository"]
    gone = [ref for ref in found.refs if (ref.kind, ref.name) != (RefKind.BRANCH, MAIN) and choice.random() < 0.3]
    held = choice.sample(sorted(referenced(found)), 1)
    come = [Ref(f"hold-{number}", RefKind.TAG, each) for number, each in enumerate(held)]
    times = sorted(each.flushed_us for each in found.snapshots.values())
    threshold = choice.choice([None, choice.choice(times) + choice.choice([0, 1])])
    return step_from(base, threshold, gone, choice.choice([[], come]), choice.choice([None, {"a": "1"}]))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_commit_is_cut_and_carried_on(tmp_path: Path, seed: int, spec: int) -> None:
    choice = random.Random(seed)
    made = grown_long_ago(tmp_path / "r", seed, spec)
    step = random_step(made, choice)
    attempt = attempt_at(made.writing(), step)
    record = json.loads(json.dumps(attempt.proof))
    for way in ("commit", "landed", "landed"):
        cut = Countdown(choice.randint(1, 5))
        try:
            if way == "commit":
                assert made.writing(CutStore(cut)).commit(replace(attempt, still=cut)) is SwapOutcome.DONE
            else:
                assert made.writing(CutStore(cut)).landed(record, made.version(), cut)
        except Died:
            assert referenced(step.document["repository"]) <= made.read().snapshots.keys()
    assert made.writing().landed(record, made.version())
    is_done(made, attempt)
    # Opened anew: an open repository of version 1 remembers the parents that it read, and collects less.
    icechunk.Repository.open(storage(tmp_path / "r")).garbage_collect(datetime.now(UTC) + timedelta(days=1))
    assert lying(tmp_path / "r", "snapshots") == referenced(step.document["repository"])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("seed", SEEDS)
def test_others_work_while_a_random_commit_is_cut(tmp_path: Path, seed: int, spec: int) -> None:
    """Whatever the library does meanwhile: nothing that a ref points to goes, no ref is lost that was not to go, and
    the commit is done or given up, never in between for ever.
    """
    choice = random.Random(seed)
    made = grown_long_ago(tmp_path / "r", seed, spec)
    attempt = attempt_at(made.writing(), random_step(made, choice))
    cut = Countdown(choice.randint(1, 5))
    with suppress(Died):
        made.writing(CutStore(cut)).commit(replace(attempt, still=cut))
    for _ in range(choice.randint(1, 4)):
        made.commits.step()
    if choice.random() < 0.5:
        times = sorted(each.flushed_us for each in made.read().snapshots.values())
        made.repo.expire_snapshots(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=choice.choice(times)))
    before, deleted = made.read(), {tuple(each) for each in attempt.proof["delete"]}
    try:
        landed = made.writing().landed(attempt.proof, made.version())
    except RefusedForSafety:
        landed = False
    after = made.read()
    assert {(ref.kind, ref.name, ref.snapshot) for ref in before.refs} - deleted <= {
        (ref.kind, ref.name, ref.snapshot) for ref in after.refs
    }
    assert (before.snapshots.keys() - after.snapshots.keys()) <= set(attempt.proof["gone"])
    assert made.writing().landed(attempt.proof, made.version()) == landed
    assert made.lines().keys() == {(str(ref.kind), ref.name) for ref in after.refs}
