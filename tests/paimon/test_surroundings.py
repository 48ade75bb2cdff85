"""Random tables of real Paimon in their surroundings: branches read with others, Iceberg metadata, links, renamed
folders, branches made again, zones, jobs with old options; and firnline's runs in the middle of it, cut and carried on.

After every step of firnline's Java and pypaimon read every root that is left as they did before, nothing went that no
plan had named, and a refusal left every byte as it was.

FIRNLINE_PAIMON_SURROUNDINGS sets how many worlds (2 unless told, 200 in the long lane).
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from harness.paimon.worlds import Paimon

from .guards import COVERED, GUARDS, Guard
from .neighbourhood import STEPS as AROUND
from .neighbourhood import Neighbourhood
from .scene import Scene
from .scripts import SCRIPTS, play_script
from .steps import VERBS, Steps
from .worlds import grown

FULL = bool(os.environ.get("FIRNLINE_FULL"))
COUNT = int(os.environ.get("FIRNLINE_PAIMON_SURROUNDINGS", "200" if FULL else "2"))
FIRST = int(os.environ.get("FIRNLINE_PAIMON_FIRST", "2000"))
ROUNDS = 8
HEADING = "count: Paimon's surroundings"
ENOUGH = 60
FIRST_GUARDED, TRIES = 3000, 12
FIRST_TOLD, TOLD = 4000, 6 if FULL else 1
LONG = pytest.mark.full
Record = Callable[[str, object], None]

done: Counter[str] = Counter()
"""What was done, over all worlds: worlds in which nothing was cut or made again would prove nothing."""


def play(both: Paimon, seed: int, counts: Counter[str], often: Iterable[str] = ()) -> None:
    """Plays the world of a seed, and counts what happened in it. Raises AssertionError where anything was lost."""
    rng = random.Random(seed)
    with grown(both, seed, rng.randint(4, 14)) as world:
        scene = Scene(both, world, rng, counts, frozenset(often))
        around = Neighbourhood(scene)
        steps = Steps(scene, around)
        for _ in range(0 if "job_commits" in scene.often else rng.choice([0, 1, 1, 2])):  # jobs expire without branches
            around.take("branch_off")
        for _ in range(ROUNDS):
            for _ in range(rng.randint(0, 2)):
                around.step()
            steps.step()
        steps.end()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_whatever_happens_around_a_table_nothing_of_it_is_lost(
    both: Paimon, seed: int, record_property: Record
) -> None:
    counts: Counter[str] = Counter()
    try:
        play(both, seed, counts)
    finally:
        record_property(HEADING, dict(sorted(counts.items())))
        done.update(counts)


@pytest.mark.skipif(COUNT < ENOUGH, reason=f"fewer than {ENOUGH} worlds need not reach everything")
def test_the_worlds_reached_everything() -> None:
    around = {f"around: {name}" for name in (*AROUND, "make_again")}
    verbs = {f"{verb}: done" for verb in VERBS}
    cuts = {f"{verb}: cut" for verb in ("expire", "expire with grace", "drop", "resume", "undo", "orphans")}
    refusals = {"drop: refused (refused)", "expire: refused (collection-forbidden)"}
    whole = {"runs that freed exactly what nothing needs", "undone runs of which all is back"}
    assert {name for name in around | verbs | cuts | refusals | whole if not done[name]} == set()


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.sampled(1)
def test_what_random_worlds_seldom_come_to_loses_nothing_either(
    both: Paimon, name: str, record_property: Record
) -> None:
    counts: Counter[str] = Counter()
    for seed in range(FIRST_TOLD, FIRST_TOLD + TOLD):
        play_script(both, seed, counts, name)
    record_property(HEADING, dict(sorted(counts.items())))


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if GUARDS[name].script else LONG) for name in GUARDS])
@pytest.mark.sampled(1)
def test_a_guard_that_is_taken_out_is_missed(both: Paimon, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """So that the worlds above can fail."""
    guard = GUARDS[name]
    guard.take_out(monkeypatch)
    assert any(is_missed(both, seed, guard) for seed in range(FIRST_GUARDED, FIRST_GUARDED + TRIES))


@pytest.mark.parametrize("name", COVERED)
@pytest.mark.full
def test_a_guard_that_another_one_stands_in_for_is_not_missed(
    both: Paimon, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    COVERED[name].take_out(monkeypatch)
    assert not any(is_missed(both, seed, COVERED[name]) for seed in range(FIRST_TOLD, FIRST_TOLD + TOLD))


def is_missed(both: Paimon, seed: int, guard: Guard) -> bool:
    try:
        if guard.script:
            play_script(both, seed, Counter(), guard.script)
        else:
            play(both, seed, Counter(), guard.met)
    except AssertionError:
        return True
    return False
