"""The core's suite of runs, crashes and what follows them, on S3 + PostgreSQL and on S3 + REST.

The same operations, faults and judge as on local files. Here a sample; everything with FIRNLINE_FULL=1.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest

from firnline.catalogs.rest.commits import is_fence
from firnline.errors import RefusedForSafety
from firnline.journal.events import RunState
from firnline.model.times import DAY_MS
from firnline.testing.faults import Dying, Losing, When
from harness.cuts import Uncut, brought_to_an_end, cut
from harness.operations import Operation, operations
from harness.world import World

FULL = bool(os.environ.get("FIRNLINE_FULL"))
OPERATIONS = {each.name: each for each in operations()}
SAMPLE = ("expire --grace 0s", "undo before commit")
ONLY_BEFORE_PURGE = ("purge", "undo", "undo after an unsaid commit")
"""Operations on a committed run in its grace: behind REST the grace lies before the commit, and nothing comes back."""

WEEK_MS = 7 * DAY_MS

MakeWorld = Callable[..., World]


@pytest.fixture(params=OPERATIONS if FULL else SAMPLE)
def operation(request: pytest.FixtureRequest, kind: str) -> Operation:
    if kind == "s3+rest" and request.param in ONLY_BEFORE_PURGE:
        pytest.skip("behind REST the time to undo lies before the commit")
    return OPERATIONS[request.param]


UNCUT: dict[tuple[str, str], Uncut] = {}


def uncut_on(kind: str, operation: Operation, make_world: MakeWorld) -> Uncut:
    """Returns the operation without a fault, run once for all tests of it."""
    if (kind, operation.name) not in UNCUT:
        UNCUT[kind, operation.name] = Uncut(operation, make_world())
    return UNCUT[kind, operation.name]


@pytest.mark.full
def test_dies_and_goes_on(operation: Operation, make_world: MakeWorld, kind: str) -> None:
    """At some effects (all of them in the full count), before and after each took place."""
    uncut = uncut_on(kind, operation, make_world)
    for at, when in _places(uncut, operation.name, kind):
        world = make_world()
        fault = Dying(at, when=when)
        cut(operation, world, fault)
        assert fault.dead
        assert brought_to_an_end(operation, world) == uncut.picture, f"died {when} {uncut.effects[at - 1]}"


@pytest.mark.full
def test_the_answer_of_a_commit_is_lost(make_world: MakeWorld, kind: str) -> None:
    """It took place: the run finds that out and ends as if it had been told."""
    operation = OPERATIONS["expire --grace 0s"]
    uncut, world = uncut_on(kind, operation, make_world), make_world()
    cut(operation, world, Losing(1, verb="commit"))
    assert brought_to_an_end(operation, world) == uncut.picture


@pytest.mark.full
@pytest.mark.parametrize("kind", ["s3+rest"])
def test_what_a_death_inside_a_commit_leaves_behind_a_server(make_world: MakeWorld) -> None:
    """One tag, on a snapshot that stays anyway, which falls to the table's own retention: with it the commit that was
    recorded and perhaps sent can only lose, whenever it arrives. Nothing else tells the end from an undisturbed one.
    """
    operation = OPERATIONS["expire --grace 0s"]
    uncut = uncut_on("s3+rest", operation, make_world)
    recorded = next(at for at, (verb, _) in enumerate(uncut.effects, 1) if verb == "commit")
    places: list[tuple[int, When]] = [(recorded - 1, "after"), (recorded, "before")]
    for at, when in places:
        world = make_world()
        cut(operation, world, Dying(at, when=when))
        assert brought_to_an_end(operation, world) == uncut.picture
        document = world.writer.document()
        ((name, fence),) = ((name, ref) for name, ref in document["refs"].items() if is_fence(name))
        assert fence["snapshot-id"] == document["refs"]["main"]["snapshot-id"] == world.snapshots["s9"]
        assert WEEK_MS < fence["max-ref-age-ms"] < 2 * WEEK_MS
        later = world.process().plan(world.table, now=world.clock() + 2 * WEEK_MS)
        assert name in later.to_json()["expire_refs"]


def test_a_whole_run_and_every_reader_after_it(world: World) -> None:
    """Expires and purges; PyIceberg reads every snapshot that is left, row by row."""
    before = world.files()
    world.process().expire(world.table, grace="0s")
    world.check()
    assert len(before - world.files()) >= 10, "data, manifests, lists and statistics of the expired snapshots"
    assert world.pyiceberg_rows() == world.rows()
    assert sorted(world.snapshots[name] for name in ("s2", "s6", "s8", "s9")) == sorted(world.rows())


@pytest.mark.full
def test_undo_brings_everything_back_or_cancels(world: World, kind: str) -> None:
    """On PostgreSQL after the commit; behind REST before it, and after it never."""
    rows = world.rows()
    world.process().expire(world.table, grace="24h")
    (run,) = world.runs()
    undone = world.process().undo(run).run.state
    assert undone is (RunState.CANCELLED if kind == "s3+rest" else RunState.UNDONE)
    assert world.rows() == rows
    world.check()
    world.process().expire(world.table, grace="0s")
    with pytest.raises(RefusedForSafety):
        world.process().undo(world.runs()[-1])
    world.check()


def _places(uncut: Uncut, *names: str) -> list[tuple[int, When]]:
    """Returns where to cut: everywhere in the full count, else at the commit and at one other effect."""
    every: list[tuple[int, When]] = [(at, when) for at in range(1, len(uncut.effects) + 1) for when in _WHEN]
    if FULL:
        return every
    commits = [place for place in every if uncut.effects[place[0] - 1][0] == "commit"]
    chance = random.Random(" ".join(names))
    return [*commits[-1:], chance.choice([place for place in every if place not in commits])]


_WHEN: tuple[When, ...] = ("before", "after")
