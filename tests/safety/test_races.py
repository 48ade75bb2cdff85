"""Somebody else acts between any two steps of any operation; no snapshot that a table keeps loses a file or a row."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest

from firnline.errors import RefusedForSafety
from firnline.journal.events import RunState
from firnline.testing.faults import CHANGES, Acting, BothFaults, CountingFault, Died, Dying
from harness.operations import Operation, operations
from harness.races import ACTIONS, race, verbs_of
from harness.world import World

FULL = bool(os.environ.get("FIRNLINE_FULL"))
OPERATIONS = {each.name: each for each in operations()}
SHORT = 12
"""Requests of an operation that has few places to be cut at: it is not tried anywhere else than where it changes."""

MakeWorld = Callable[..., World]
CountCases = Callable[[str, int], None]


UNCUT: dict[str, tuple[str, ...]] = {}


@pytest.fixture
def verbs(operation: str, make_world: MakeWorld) -> tuple[str, ...]:
    """The requests of the operation when nobody interferes; noted once for all tests of it."""
    if operation not in UNCUT:
        UNCUT[operation] = verbs_of(OPERATIONS[operation], make_world())
    return UNCUT[operation]


def boundaries(operation: str, action: str, verbs: tuple[str, ...]) -> list[int]:
    """Returns before which requests the action takes place: all of them, or one that the names determine."""
    every = range(1, len(verbs) + 1)
    if FULL:
        return list(every)
    chance = random.Random(f"{operation} × {action}")
    decisive = [at for at in every if verbs[at - 1] in CHANGES]
    anywhere = every if len(every) > SHORT else decisive
    return [chance.choice(chance.choice([decisive, anywhere]))]


@pytest.mark.sampled(18)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "action", [pytest.param(each, marks=pytest.mark.xdist_group(f"races-{n % 4}")) for n, each in enumerate(ACTIONS)]
)
def test_somebody_acts_between_two_steps(
    operation: str, action: str, verbs: tuple[str, ...], make_world: MakeWorld, count_cases: CountCases
) -> None:
    chosen = boundaries(operation, action, verbs)
    for at in chosen:
        race(OPERATIONS[operation], action, at, make_world())
    count_cases("somebody acted between two steps", len(chosen))


def orphans_go_before_the_commit(operation: Operation, make_world: MakeWorld) -> int:
    """Returns before which request of an undo another tool must act so that the undo's first look was in vain."""
    return verbs_of(operation, make_world()).index("commit") + 1


def test_an_undo_whose_files_vanish_at_its_commit_is_taken_back(make_world: MakeWorld, count_cases: CountCases) -> None:
    """Wherever it dies on the way back, the snapshots without files do not stay, and the run can still be purged."""
    undo = OPERATIONS["undo"]
    at = orphans_go_before_the_commit(undo, make_world)
    counting = CountingFault()
    world = undo.ready(make_world())
    with pytest.raises(RefusedForSafety):
        undo.act(world.process(BothFaults(Acting(at, world.actions.other_orphan_removal), counting)), world)
    taken_back(world)
    for effect in range(1, counting.effects + 1):
        world = undo.ready(make_world())
        fault = BothFaults(Acting(at, world.actions.other_orphan_removal), Dying(effect, when="after"))
        with pytest.raises(Died):
            undo.act(world.process(fault), world)
        world.wait_for_lease()
        world.actions.other_orphan_removal()
        with pytest.raises(RefusedForSafety):
            undo.act(world.process(), world)
        taken_back(world)
    count_cases("an undo in vain died, and was taken back", counting.effects)


def taken_back(world: World) -> None:
    world.check()
    assert world.process().run(world.run).run.state is RunState.COMMITTED
    assert set(world.rows()) == {world.snapshots[name] for name in ("s2", "s6", "s8", "s9")}
