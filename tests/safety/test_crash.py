"""Cut every operation at every place where something durable happens; whoever comes next brings it to the same end."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from firnline.errors import DeletesFailed, FirnlineError, LeaseHeld, OutcomeUnknown, RefusedForSafety, StoreError
from firnline.journal.events import RunState
from firnline.journal.lease import latest_claim
from firnline.stores.objects import ObjectStores
from firnline.testing.faults import (
    Delaying,
    Died,
    Duplicating,
    Dying,
    Fault,
    Freezing,
    Losing,
    NeverAnswered,
    Throttling,
    When,
)
from harness.cuts import Uncut, brought_to_an_end, cut
from harness.operations import Operation, operations
from harness.world import World

FULL = bool(os.environ.get("FIRNLINE_FULL"))
OPERATIONS = {each.name: each for each in operations()}
WHEN: tuple[When, ...] = ("before", "after")
MakeWorld = Callable[..., World]
CountCases = Callable[[str, int], None]
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")


@pytest.fixture(params=OPERATIONS)
def operation(request: pytest.FixtureRequest) -> Operation:
    return OPERATIONS[request.param]


UNCUT: dict[str, Uncut] = {}


@pytest.fixture
def uncut(operation: Operation, make_world: MakeWorld) -> Uncut:
    """The operation without a fault, run once for all tests of it: a picture does not depend on its world."""
    if operation.name not in UNCUT:
        UNCUT[operation.name] = Uncut(operation, make_world())
    return UNCUT[operation.name]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("when", WHEN if FULL else WHEN[:1])
def test_dies_at_every_effect(
    operation: Operation, uncut: Uncut, make_world: MakeWorld, when: When, count_cases: CountCases
) -> None:
    """A death after one effect leaves what a death before the next one leaves; the long count has both all the same."""
    chosen = telling(uncut.effects)
    for at in chosen:
        world = make_world()
        fault = Dying(at, when=when)
        cut(operation, world, fault)
        assert fault.dead
        assert brought_to_an_end(operation, world) == uncut.picture, f"died {when} {uncut.effects[at - 1]}"
    count_cases("died at an effect, and went on", len(chosen))


def telling(effects: list[tuple[str, str]]) -> list[int]:
    """Returns the numbers of the effects to die at: all in the long count, else the first of each kind in each folder,
    the last one, and every third.
    """
    every = list(range(1, len(effects) + 1))
    if FULL:
        return every
    kinds = [(verb, key.split("/")[-2:-1]) for verb, key in effects]
    return [at for at in every if at % 3 == 0 or at == len(effects) or kinds.index(kinds[at - 1]) == at - 1]


@pytest.mark.sampled(5)
def test_dies_again_while_going_on(
    operation: Operation, uncut: Uncut, make_world: MakeWorld, count_cases: CountCases
) -> None:
    """Any two cuts, one in the operation and one in what a person does after it, lead to the same end."""
    chance = random.Random(operation.name)
    cuts = 40 if FULL else 2
    for _ in range(cuts):
        first, second = (Dying(chance.randint(1, len(uncut.effects)), when=chance.choice(WHEN)) for _ in "12")
        world = make_world()
        cut(operation, world, first)
        world.wait_for_lease()
        with suppress(Died):
            operation.again(world.process(second), world)
        world.check()
        assert brought_to_an_end(operation, world) == uncut.picture, f"{first}, then {second}"
    count_cases("died twice, and went on", cuts)


TROUBLE: dict[tuple[type[Fault], bool], tuple[type[FirnlineError], ...]] = {
    (Losing, False): (StoreError, OutcomeUnknown, DeletesFailed),
    (Losing, True): (DeletesFailed,),
    (Delaying, False): (StoreError, OutcomeUnknown, DeletesFailed),
    (Delaying, True): (DeletesFailed,),
    (Duplicating, False): (),
    (Duplicating, True): (),
}
"""How an operation may end when one of its requests goes wrong, without and with retries below it."""


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("kind", "retrying"), TROUBLE)
def test_one_request_goes_wrong(
    operation: Operation,
    uncut: Uncut,
    make_world: MakeWorld,
    kind: type[Losing | Duplicating | Delaying],
    retrying: bool,
    count_cases: CountCases,
) -> None:
    chosen = some(uncut.effects, operation.name, kind.__name__)
    for at in chosen:
        world = operation.ready(make_world())
        fault = kind(at)
        with suppress(*TROUBLE[kind, retrying]):
            operation.act(world.process(fault, retrying=retrying), world)
        if isinstance(fault, Delaying):
            fault.land()
        world.check()
        effect = uncut.effects[at - 1]
        assert brought_to_an_end(operation, world) == uncut.picture, f"{kind.__name__} {effect}"
    count_cases(f"{kind.__name__.lower()} one request", len(chosen))


def test_a_commit_that_arrives_late_is_not_taken_for_lost(world: World) -> None:
    """Its sender gave up without knowing. Whoever comes next has to wait, and then finds it landed."""
    planned = OPERATIONS["commit"].ready(world)
    late = NeverAnswered("commit")
    first = world.process(late)
    first.owner = "this-machine:1:a-boot:a-start:0"
    with pytest.raises(OutcomeUnknown):
        first.commit(planned.run)
    claim = latest_claim(ObjectStores(), f"{world.writer.location}/_firnline/lease")
    assert claim is not None
    assert ":" not in claim.owner, "a name that looks like a process could be found dead, and its lease taken at once"
    with pytest.raises(LeaseHeld):
        world.process().undo(planned.run)
    late.land()
    assert len(world.rows()) < len(world.snapshots), "the late commit must take snapshots out"
    world.wait_for_lease()
    assert world.process().undo(planned.run).run.state is RunState.UNDONE
    assert set(world.rows()) == set(world.snapshots.values())
    world.check()


def test_a_commit_of_a_frozen_process_cannot_land_after_its_run_was_cancelled(world: World) -> None:
    """Its lease ran out, another process cancelled the run, and then it wakes and sends what it was about to send."""
    planned = OPERATIONS["commit"].ready(world)
    frozen = Freezing(1, verb="commit")
    with pytest.raises(Died):
        world.process(frozen).commit(planned.run)
    world.wait_for_lease()
    assert world.process().undo(planned.run).run.state is RunState.CANCELLED
    frozen.wake()
    assert set(world.rows()) == set(world.snapshots.values())
    world.check()


def test_an_undo_of_a_frozen_process_cannot_land_after_another_stepped_back(world: World) -> None:
    """Otherwise the snapshots come back after the purge, which went on because the undo had been refused."""
    committed = OPERATIONS["purge"].ready(world)
    frozen = Freezing(1, verb="commit")
    with pytest.raises(Died):
        world.process(frozen).undo(committed.run)
    world.actions.other_orphan_removal()
    world.wait_for_lease()
    with pytest.raises(RefusedForSafety):
        world.process().undo(committed.run)
    assert world.process().purge(committed.run).run.state is RunState.DONE
    frozen.wake()
    world.check()


@pytest.mark.sampled(9)
@pytest.mark.parametrize("every", [2, 3, 5] if FULL else [3])
def test_every_few_requests_are_turned_away(
    operation: Operation, uncut: Uncut, make_world: MakeWorld, every: int
) -> None:
    """With retries below it an operation gets through; what cannot be retried is done again by a person."""
    world = operation.ready(make_world())
    fault = Throttling(every)
    for _ in range(every + 1):
        with suppress(DeletesFailed, StoreError, OutcomeUnknown):
            operation.again(world.process(fault, retrying=True), world)
        world.check()
        world.wait_for_lease()
    assert brought_to_an_end(operation, world) == uncut.picture


def some(effects: list[tuple[str, str]], *names: str) -> list[int]:
    """Returns the numbers of the effects to try: all in the long count, else every fifth from where the names say."""
    every = list(range(1, len(effects) + 1))
    return every if FULL else every[random.Random(" ".join(names)).randrange(5) % len(every) :: 5]
