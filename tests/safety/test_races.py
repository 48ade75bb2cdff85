"""Somebody else acts between any two steps of any operation; no snapshot that a table keeps loses a file or a row."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from firnline.errors import (
    CollectionForbidden,
    FirnlineError,
    NoSuchTable,
    RefusedForSafety,
    TableMoved,
    UnreadableMetadata,
    UsageError,
)
from firnline.testing.faults import CHANGES, Acting, Counting
from firnline.testing.operations import Operation, operations
from firnline.testing.world import World
from firnline.testing.writers import TableGone

FULL = bool(os.environ.get("FIRNLINE_FULL"))
OPERATIONS = {each.name: each for each in operations()}
MakeWorld = Callable[..., World]
CountCases = Callable[[str, int], None]


def hold(world: World) -> bool:
    """Holds the oldest snapshot, also one that a run took out of the table a moment ago."""
    return _held(world, "meanwhile", world.snapshots["s1"])


def hold_table(world: World) -> bool:
    return _held(world, "meanwhile", None)


def _held(world: World, name: str, snapshot: int | None) -> bool:
    try:
        world.process().hold_add(world.table, name, snapshot)
    except UsageError:
        return False
    tagged = world.writer.document()["refs"].get(f"firnline-hold-{name}")
    if tagged is not None:
        world.actions.refs[f"firnline-hold-{name}"] = tagged["snapshot-id"]
    return True


ACTIONS: dict[str, Callable[[World], bool]] = {
    "tag": lambda world: world.actions.tag(),
    "branch": lambda world: world.actions.branch(),
    "cherry-pick": lambda world: world.actions.cherry_pick(),
    "roll back": lambda world: world.actions.roll_back(),
    "re-add": lambda world: world.actions.re_add(),
    "append": lambda world: world.actions.append(),
    "rewrite": lambda world: world.actions.rewrite(),
    "drop and re-create": lambda world: world.actions.drop_and_recreate(),
    "rename": lambda world: world.actions.rename(),
    "hold": hold,
    "hold on the table": hold_table,
    "another tool's expiry": lambda world: world.actions.other_expiry(),
    "another tool's orphan removal": lambda world: world.actions.other_orphan_removal(),
}

TAKES_UP_OLD_FILES = {"re-add", "drop and re-create"}
"""What these bring back may be on the list of the very delete that is on its way: see Acting.blind."""

REFUSALS: dict[str, tuple[type[FirnlineError], ...]] = {
    "drop and re-create": (TableMoved, UsageError),
    "rename": (NoSuchTable,),
    "hold on the table": (CollectionForbidden,),
    "hold": (UnreadableMetadata,),
    "another tool's expiry": (UnreadableMetadata, RefusedForSafety, UsageError),
    "another tool's orphan removal": (RefusedForSafety,),
}
"""How an operation may end because of an action; for every other action it must succeed.

A hold may come when the purge has half removed what it names: then nobody can tell what is left to be held.
"""


@cache
def trace_of(operation: Operation, folder: Path) -> tuple[str, ...]:
    """Returns the verbs of all requests of the operation as it goes when nobody interferes."""
    world = operation.ready(World.make(folder))
    counting = Counting()
    operation.act(world.process(counting), world)
    return tuple(verb for verb, _ in counting.trace)


def boundaries(operation: str, action: str, verbs: tuple[str, ...]) -> list[int]:
    """Returns before which requests the action takes place: all of them, or two that the names determine."""
    every = range(1, len(verbs) + 1)
    if FULL:
        return list(every)
    chance = random.Random(f"{operation} × {action}")
    decisive = [at for at in every if verbs[at - 1] in CHANGES]
    return sorted({chance.choice(decisive), chance.choice(every)})


@pytest.fixture(params=OPERATIONS)
def operation(request: pytest.FixtureRequest) -> Operation:
    return OPERATIONS[request.param]


@pytest.fixture(params=ACTIONS)
def action(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_somebody_acts_between_two_steps(
    operation: Operation, action: str, make_world: MakeWorld, quick_folder: Path, count_cases: CountCases
) -> None:
    verbs = trace_of(operation, quick_folder / "uncut")
    chosen = boundaries(operation.name, action, verbs)
    for at in chosen:
        race(operation, action, at, make_world())
    count_cases("somebody acted between two steps", len(chosen))


def race(operation: Operation, action: str, at: int, world: World) -> None:
    """Runs the operation with the action before its n-th request, then brings it to an end; judges after each."""
    operation.ready(world)
    acting = Acting(at, lambda: ACTIONS[action](world))
    allowed = REFUSALS.get(action, ())
    with suppress(*allowed):
        operation.act(world.process(acting), world)
    assert acting.before is not None, "the operation ended before anybody acted"
    where = f"{operation.name}: {action} before request {at}, {acting.before}"
    blind = frozenset(acting.blind) if action in TAKES_UP_OLD_FILES else frozenset[str]()
    assert not world.problems(blind), where
    world.wait_for_lease()
    with suppress(*allowed, UsageError):
        operation.again(world.process(), world)
    assert not world.problems(blind), f"{where}, then again"
    with suppress(*allowed, TableGone):
        world.process().resume(world.table)
    assert not world.problems(blind), f"{where}, then resumed"
