"""A run that remembers dies at any effect: whoever comes next ends with the same history, and clears up after it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from firnline.testing.faults import Answer, CountingFault, Died, Dying, PortRequest, When
from harness.world import World
from tests.history.parts import expire, files, ids, ledger, listed, local, pointer

FULL = bool(os.environ.get("FIRNLINE_FULL"))
WHEN: tuple[When, ...] = ("before", "after")


@pytest.fixture
def make(quick_folder: Path) -> Callable[[], World]:
    made: list[World] = []

    def one() -> World:
        made.append(World.make(quick_folder / f"world {len(made)}"))
        made[-1].policy = "history: forever"
        return made[-1]

    return one


@dataclass
class BeforeCommits:
    """Somebody acts just before each of the first commits, so that these lose their race."""

    times: int
    action: Callable[[], object]

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if request.verb == "commit" and self.times:
            self.times -= 1
            self.action()
        return request.send()


def effects(world: World) -> int:
    counting = CountingFault()
    world.process(counting).expire(world.table, grace="0s")
    return counting.effects


def test_dies_at_every_effect_of_an_expiry(make: Callable[[], World]) -> None:
    cut = 0
    for at in range(1, effects(make()) + 1, 1 if FULL else 2):
        for when in WHEN if FULL else WHEN[:1]:  # after one effect is before the next
            world = make()
            with suppress(Died):
                world.process(Dying(at, when=when)).expire(world.table, grace="0s")
            world.wait_for_lease()
            world.process().resume(world.table)
            world.process().expire(world.table, grace="0s")
            cut += 1
            where = f"died {when} effect {at}"
            gone = ids(world, "s1", "s3", "s4", "s5", "s7")
            assert {each["snapshot-id"] for each in listed(world)} == gone, where
            assert sorted(int(row["snapshot_id"]) for row in ledger(world, "snapshots")) == sorted(gone), where
            assert [row["end"] for row in ledger(world, "ends")] == ["purged"], where
            world.check()
    assert cut > 10


def quiet(world: World, fault: CountingFault | Dying | None = None) -> None:
    """Expires nothing, and forgets what is not younger than s4."""
    (bound,) = (each["timestamp-ms"] for each in listed(world) if each["snapshot-id"] == world.snapshots["s4"])
    world.process(fault).expire(world.table, grace="0s", retain_last=1_000, keep={"history": bound})


@pytest.mark.full
def test_dies_at_every_effect_of_a_run_that_only_forgets(make: Callable[[], World]) -> None:
    counting = CountingFault()
    world = make()
    expire(world, grace="0s")
    quiet(world, counting)
    for at in range(1, counting.effects + 1):
        world = make()
        expire(world, grace="0s")
        with suppress(Died):
            quiet(world, Dying(at))
        world.wait_for_lease()
        world.process().resume(world.table)
        with suppress(ValueError):  # what bounds it is forgotten already
            quiet(world)
        assert {each["snapshot-id"] for each in listed(world)} == ids(world, "s5", "s7"), f"died at effect {at}"
        world.check()
    assert counting.effects > 3


def test_what_a_death_before_the_commit_left_is_removed_by_the_next_run(make: Callable[[], World]) -> None:
    world, at = make(), 0
    while not files(world):
        at += 1
        world = make()
        with suppress(Died):
            world.process(Dying(at, when="after")).expire(world.table, grace="0s")
    assert pointer(world) is None
    (left,) = files(world)
    world.wait_for_lease()
    world.process().resume(world.table)
    assert [str(path) for path in files(world)] == [str(local(str(pointer(world))))]
    assert not left.exists()


def test_a_lost_race_builds_on_the_history_that_is_there_then(make: Callable[[], World]) -> None:
    world = make()
    expire(world, grace="0s")
    first = {each["snapshot-id"] for each in listed(world)}
    world.writer.append(1)
    world.process(BeforeCommits(3, lambda: world.writer.append(1))).expire(
        world.table, grace="0s", older_than=world.clock(), retain_last=1
    )
    assert first < {each["snapshot-id"] for each in listed(world)}
    assert len(files(world)) == 2  # the first, which the log names, and the one that landed
    world.check()
