"""The plan that an operator is shown is the list that is saved and carried out; no record can shorten it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from firnline.errors import UnreadableMetadata
from firnline.model.times import HOUR_MS
from firnline.ops.runs.status import RunStatus
from firnline.plans.plan import Plan
from firnline.plans.stages import AwaitGrace, CommitExpiry, PurgeVictims, stages_json
from harness.days import process_on_its_day
from harness.disks import local
from harness.forgery import Forgery
from harness.world import World


def expired(world: World, shown: list[Plan], grace: str = "1h") -> RunStatus:
    ended = process_on_its_day(world).expire(world.table, grace=grace, confirm=shown.append)
    assert isinstance(ended, RunStatus)
    return ended


def test_what_is_shown_is_what_is_saved_and_what_is_left_shrinks_as_the_run_goes(world: World) -> None:
    shown: list[Plan] = []
    status = expired(world, shown)
    (plan,) = shown
    saved = json.loads(local(status.run.folder.plan).read_bytes())
    assert saved["stages"] == stages_json(plan.stages)
    assert [type(each) for each in plan.stages] == [CommitExpiry, AwaitGrace, PurgeVictims]
    assert plan.stages[1] == AwaitGrace(HOUR_MS), "the grace that was asked for, not the policy's"
    assert status.run.stages_left == plan.stages[1:]
    world.clock.advance(2 * HOUR_MS)
    done = process_on_its_day(world).purge(status.id)
    assert (done.state, done.run.stages_left) == ("done", ())


def test_a_run_that_is_undone_has_nothing_left_to_do(world: World) -> None:
    undone = process_on_its_day(world).undo(expired(world, []).id)
    assert (undone.state, undone.run.stages_left) == ("undone", ())


def left_out(name: str) -> Any:
    def edit(plan: dict[str, Any]) -> None:
        plan["stages"] = [each for each in plan["stages"] if each["stage"] != name]

    return pytest.param(edit, id=f"without {name}")


@pytest.mark.parametrize("edit", [left_out("commit"), left_out("await-grace"), left_out("purge")])
def test_a_record_without_one_of_the_stages_is_refused(world: World, edit: Any) -> None:
    status = expired(world, [])
    Forgery(local(status.run.folder.folder)).edit(edit)
    before = world.files()
    for act in (process_on_its_day(world).advance, process_on_its_day(world).purge, process_on_its_day(world).undo):
        with pytest.raises(UnreadableMetadata, match="stages"):
            act(status.id)
    assert world.files() == before


@pytest.mark.parametrize("strange", [None, -1, "1h", 1.5, True])
def test_a_grace_that_is_no_time_is_refused_by_whatever_looks_at_the_run(world: World, strange: Any) -> None:
    status = expired(world, [])
    Forgery(local(status.run.folder.folder)).edit(lambda plan: plan["stages"][1].update({"grace_ms": strange}))
    process, before = process_on_its_day(world), world.files()
    for act in (process.run, process.advance, process.purge, process.undo):
        with pytest.raises(UnreadableMetadata, match="stages"):
            act(status.id)
    for ask in (process.runs, process.resume, process.purge_table):
        with pytest.raises(UnreadableMetadata, match="stages"):
            ask(world.table)
    assert world.files() == before
