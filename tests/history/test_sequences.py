"""Commits, expiries, undos and purges in any order on a real table: its history is what a set of ids says."""

from __future__ import annotations

import os
import random

import pytest

from firnline.ops.runs.status import RunStatus
from harness.world import World
from tests.history.parts import ledger

SEEDS = range(20 if os.environ.get("FIRNLINE_FULL") else 2)


def expire_some(world: World, chance: random.Random) -> RunStatus | None:
    done = world.process().expire(
        world.table,
        grace="24h",
        older_than=world.clock(),
        retain_last=chance.randint(1, 3),
        blast_radius=1.0,
    )
    return done if isinstance(done, RunStatus) else None


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_is_what_expired_and_did_not_come_back(world: World, seed: int) -> None:
    chance, gone, open_runs = random.Random(seed), set[str](), list[RunStatus]()
    world.policy = "history: forever"
    for _ in range(8):
        step = chance.choice(("append", "expire", "expire", "undo"))
        if step == "append":
            world.writer.append(1)
        elif step == "undo" and open_runs:
            run = open_runs.pop(chance.randrange(len(open_runs)))
            world.process().undo(str(run.run.id))
            gone -= set(run.expired)
        elif (run_now := expire_some(world, chance)) is not None:
            gone |= set(run_now.expired)
            open_runs.append(run_now)
        found = [str(each["snapshot-id"]) for each in world.process().expired_snapshots(world.table)]
        assert sorted(found) == sorted(gone), f"after {step}"
    undone = {row["run"] for row in ledger(world, "ends")}
    assert {row["snapshot_id"] for row in ledger(world, "snapshots") if row["run"] not in undone} == gone
    world.check()
