"""Races: an operation, somebody who acts before its n-th request, and what must hold afterwards."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from firnline.errors import (
    CollectionForbidden,
    FirnlineError,
    NoSuchTable,
    RefusedForSafety,
    TableMoved,
    TakenUpAgain,
    UnreadableMetadata,
    UsageError,
)
from firnline.testing.faults import Acting, CountingFault
from harness.operations import Operation
from harness.world import World


def hold(world: World) -> bool:
    """Holds the oldest snapshot, also one that a run took out of the table a moment ago."""
    return _held(world, "meanwhile", world.snapshots["s1"])


def hold_table(world: World) -> bool:
    return _held(world, "meanwhile", None)


def _held(world: World, name: str, snapshot: int | None) -> bool:
    try:
        world.process().hold_add(world.table, name, snapshot)
    except (UsageError, RefusedForSafety):
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
    "another tool's expiry": (UnreadableMetadata, RefusedForSafety, UsageError),
    "another tool's orphan removal": (RefusedForSafety,),
}
"""How an operation may end because of an action; for every other action it must succeed."""


def verbs_of(operation: Operation, world: World) -> tuple[str, ...]:
    """Returns the verbs of all requests of the operation as it goes when nobody interferes."""
    operation.ready(world)
    counting = CountingFault()
    operation.act(world.process(counting), world)
    return tuple(verb for verb, _ in counting.trace)


def race(operation: Operation, action: str, at: int, world: World) -> None:
    """Runs the operation with the action before its n-th request, then brings it to an end.

    Raises AssertionError, naming the place, where a snapshot that any table keeps lost a file or a row, a ref that
    was made meanwhile is gone, or the operation ended in a way that the action does not explain.
    """
    operation.ready(world)
    acting = Acting(at, lambda: ACTIONS[action](world))
    allowed = REFUSALS.get(action, ())
    told = ""
    with suppress(*allowed):
        try:
            operation.act(world.process(acting), world)
        except TakenUpAgain as named:
            told = str(named)
    assert acting.before is not None, "the operation ended before anybody acted"
    where = f"{operation.name}: {action} before request {at}, {acting.before}"
    blind = frozenset(acting.blind) if action in TAKES_UP_OLD_FILES else frozenset[str]()
    _judge(world, blind, where)
    lost = [path for path in blind if world.problems(blind - {path})] if action not in REFUSALS else []
    assert all(path in told for path in lost), f"{where}: lost in silence: {lost}"
    world.wait_for_lease()
    with suppress(*allowed, UsageError):
        operation.again(world.process(), world)
    _judge(world, blind, f"{where}, then again")
    with suppress(*(() if action == "rename" else allowed)):
        for carried in world.process().resume(world.table):
            assert carried.run.is_finished or carried.waits, f"{where}, and {carried.run.id} goes no further"
    _judge(world, blind, f"{where}, then resumed")


def _judge(world: World, blind: frozenset[str], where: str) -> None:
    problems = world.problems(blind)
    assert not problems, "\n".join([where, *problems])
