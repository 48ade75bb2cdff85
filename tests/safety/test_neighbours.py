"""A neighbour comes up between any two steps of an expiry, a purge, an undo and a search; no table loses anything."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from firnline.testing.faults import CHANGES, CountingFault
from harness.neighbours import STEPS, Neighbourhood, neighbour_comes, side_objects
from harness.world import World

FULL = bool(os.environ.get("FIRNLINE_FULL"))
OPERATIONS = side_objects()
UNCUT: dict[str, tuple[str, ...]] = {}

MakeWorld = Callable[..., World]
CountCases = Callable[[str, int], None]


def verbs_of(operation: str, make_world: MakeWorld) -> tuple[str, ...]:
    """Returns the verbs of the operation when nobody comes; noted once for all tests of it."""
    if operation not in UNCUT:
        world, counting = make_world(), CountingFault()
        around = Neighbourhood.of(world)
        OPERATIONS[operation].ready(world)
        OPERATIONS[operation].act(world.process(counting), world)
        world.check()
        assert all(map(world.ground.disk.exists, around.strays)) == (operation != "orphans")
        UNCUT[operation] = tuple(verb for verb, _ in counting.trace)
    return UNCUT[operation]


def boundaries(operation: str, step: str, verbs: tuple[str, ...]) -> list[int]:
    """Returns before which requests the neighbour comes: two that the names determine; in the long count before every
    one that changes something or lists a catalog, and the one after it, and before every fourth of the others.
    """
    every = range(1, len(verbs) + 1)
    chance = random.Random(f"{operation} and {step}")
    decisive = [at for at in every if verbs[at - 1] in {*CHANGES, "pointers", "tables"}]
    if FULL:
        after = {at + 1 for at in decisive} & set(every)
        return sorted({*decisive, *after, *every[chance.randrange(4) :: 4]})
    return sorted({chance.choice(decisive), chance.choice(every)})


@pytest.mark.sampled(6)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("step", STEPS)
def test_a_neighbour_comes_between_two_steps(
    operation: str, step: str, make_world: MakeWorld, count_cases: CountCases
) -> None:
    chosen = boundaries(operation, step, verbs_of(operation, make_world))
    for at in chosen:
        neighbour_comes(OPERATIONS[operation], step, at, make_world())
    count_cases("a neighbour came up between two steps", len(chosen))


@pytest.mark.parametrize("step", STEPS)
def test_where_no_other_table_is_asked_the_harness_finds_the_loss(step: str, make_world: MakeWorld) -> None:
    """It can fail: `sharing: none` is what every expiry did before other tables were asked."""
    alone = replace(OPERATIONS["expire --grace 0s"], policy="sharing: none")
    with pytest.raises(AssertionError, match=r"is missing|lost in silence"):
        neighbour_comes(alone, step, 1, make_world())
