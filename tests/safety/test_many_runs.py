"""A table with many runs behind it: a purge looks at it before each batch, and reads what can never move again once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

from firnline.journal import parts
from firnline.testing.faults import Answer, PortRequest
from harness.days import process_on_its_day
from harness.world import World


@dataclass
class Reads:
    """How often each run's record was read, from the first delete on."""

    begun: bool = False
    of: Counter[str] = field(default_factory=Counter)
    looks: int = 0

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        self.begun |= request.verb == "delete"
        self.looks += self.begun and "/outcomes/" in request.key and request.verb == "put_if_absent"
        if self.begun and request.verb == "get" and request.key.endswith("/plan.json"):
            self.of[request.key.rsplit("/", 2)[1]] += 1
        return request.send()


def test_runs_that_ended_are_read_once_in_a_purge_and_one_that_may_be_undone_at_every_look(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART_ROWS", 1)
    process = process_on_its_day(world)
    plans = [str(process.plan(world.table, save=True).plan.run) for _ in range(2)]
    process.undo(plans[1])
    saved, ended = (each.rpartition("@")[2] for each in plans)
    reads = Reads()
    process_on_its_day(world, reads).expire(world.table, grace="0s")
    (own,) = {run.rpartition("@")[2] for run in world.runs()} - {saved, ended}
    assert reads.looks > 3
    assert reads.of[ended] <= 1
    assert reads.of[saved] >= reads.looks - 1, "it may be committed at any time"
    assert reads.of[own] <= 2, "what it takes out itself brings nothing back"
    world.check()
