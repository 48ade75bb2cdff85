"""Everything firnline does to a table: how to get there, what is done, and what a person does after a crash."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from firnline.errors import UsageError
from firnline.journal.events import RunState
from firnline.testing.faults import Died, Dying
from harness.processes import Process
from harness.world import World

Step = Callable[[Process, World], object]

_LONGER = "keep: {within: 60d, tags: [release]}"


def _nothing(process: Process, world: World) -> None:
    """A world as it was made will do."""


@dataclass(frozen=True)
class Operation:
    """One operation. `again` brings an interrupted one to its end; it is run by another process."""

    name: str
    act: Step
    again: Step
    prepare: Step = _nothing
    policy: str = ""

    def ready(self, world: World) -> World:
        """Returns the world where the operation can start."""
        world.policy = self.policy
        self.prepare(world.process(), world)
        world.run = next(reversed(world.runs()), "")
        return world


def operations() -> list[Operation]:
    return [*_of_runs(), *_of_marks()]


def _of_runs() -> list[Operation]:
    return [
        Operation("plan --save", _plan, _plan),
        Operation("commit", _commit, _commit_unless_done, _plan),
        Operation("purge", _purge, _purge, _commit_with_short_grace),
        Operation("undo", _undo, _undo_unless_done, _commit_with_long_grace),
        Operation("undo before commit", _undo, _undo_unless_done, _plan),
        Operation("undo after an unsent commit", _undo, _undo_unless_done, _die_before_commit),
        Operation("undo after an unsaid commit", _undo, _undo_unless_done, _die_after_commit),
        Operation("expire --grace 0s", _expire, _resume_or_expire),
        Operation("resume after planning", _resume, _resume, _die_before_commit),
        Operation("resume after commit", _resume, _resume, _die_after_commit),
    ]


def _of_marks() -> list[Operation]:
    return [
        _mark("tag add", lambda p, w: p.tag_add(w.table, "kept", w.snapshots["s1"])),
        _mark("tag remove", lambda p, w: p.tag_remove(w.table, "release")),
        _mark("hold add, snapshot", _hold_snapshot),
        _mark("hold add, table", _hold_table),
        _mark("hold release, snapshot", _release, _hold_snapshot),
        _mark("hold release, table", _release, _hold_table),
        _mark("adopt", lambda p, w: p.adopt(w.table), policy=_LONGER),
    ]


def _mark(name: str, act: Step, prepare: Step = _nothing, policy: str = "") -> Operation:
    """Returns an operation that is simply run again. Where it had been done, that is said as a wrong use."""

    def again(process: Process, world: World) -> None:
        with suppress(UsageError):
            act(process, world)

    return Operation(name, act, again, prepare, policy)


# ---- what is done


def _plan(process: Process, world: World) -> None:
    process.plan(world.table, save=True)


def _expire(process: Process, world: World) -> None:
    process.expire(world.table, grace="0s")


def _commit(process: Process, world: World) -> None:
    process.commit(world.run)


def _purge(process: Process, world: World) -> None:
    process.purge(world.run)


def _undo(process: Process, world: World) -> None:
    process.undo(world.run)


def _resume(process: Process, world: World) -> None:
    process.resume(world.table)


def _hold_snapshot(process: Process, world: World) -> None:
    process.hold_add(world.table, "case", world.snapshots["s1"])


def _hold_table(process: Process, world: World) -> None:
    process.hold_add(world.table, "case")


def _release(process: Process, world: World) -> None:
    process.hold_release(world.table, "case")


# ---- how to get there


def _commit_with_short_grace(process: Process, world: World) -> None:
    process.expire(world.table, grace="1s")
    world.clock.advance(2_000)


def _commit_with_long_grace(process: Process, world: World) -> None:
    process.expire(world.table, grace="24h")


def _die_before_commit(process: Process, world: World) -> None:
    _die(world, Dying(1, verb="commit", when="before"))


def _die_after_commit(process: Process, world: World) -> None:
    _die(world, Dying(1, verb="commit", when="after"))


def _die(world: World, fault: Dying) -> None:
    with suppress(Died):
        _expire(world.process(fault), world)
    world.wait_for_lease()


# ---- what a person does after a crash


def _state(process: Process, world: World) -> RunState:
    return process.run(world.run).run.state


def _commit_unless_done(process: Process, world: World) -> None:
    if _state(process, world) in (RunState.PLANNED, RunState.COMMITTING):
        _commit(process, world)


def _undo_unless_done(process: Process, world: World) -> None:
    if _state(process, world) not in (RunState.UNDONE, RunState.CANCELLED):
        _undo(process, world)


def _resume_or_expire(process: Process, world: World) -> None:
    if not process.resume(world.table) and not process.runs(world.table):
        _expire(process, world)
