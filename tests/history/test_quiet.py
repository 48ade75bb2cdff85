"""A table on which nothing expires any more still forgets what is older than its bound; the bound may be an instant."""

from __future__ import annotations

import pytest

from firnline.app.verbs.plan_views import PlanView
from firnline.errors import PolicyError
from firnline.history.names import PATH
from firnline.model.times import DAY_MS, format_instant
from firnline.ops.runs.status import RunStatus
from firnline.plans.stages import CommitExpiry
from harness.world import World
from tests.history.parts import expire, files, ids, ledger, listed, local, pointer

QUIET = {"retain_last": 1_000}
"""With this nothing of the table expires."""


def committed(world: World, name: str) -> int:
    return next(each["timestamp-ms"] for each in listed(world) if each["snapshot-id"] == world.snapshots[name])


def forgets(plan: PlanView) -> list[int]:
    return [stage.forgets for stage in plan.plan.stages if isinstance(stage, CommitExpiry)]


def test_what_is_older_than_the_bound_goes_although_nothing_expires(world: World) -> None:
    expire(world, grace="0s")
    assert {each["snapshot-id"] for each in listed(world)} == ids(world, "s3", "s4", "s5", "s7")
    now = committed(world, "s4") + 25 * DAY_MS
    quiet = world.process().expire(world.table, grace="0s", now=now, **QUIET)
    assert isinstance(quiet, RunStatus)
    assert quiet.expired == ()
    assert quiet.state == "done"
    assert {each["snapshot-id"] for each in listed(world)} == ids(world, "s5", "s7")
    world.check()


def test_the_plan_says_how_many_are_forgotten_and_changes_nothing(world: World) -> None:
    expire(world, grace="0s")
    before, now = pointer(world), committed(world, "s4") + 25 * DAY_MS
    plan = world.process().plan(world.table, now=now, **QUIET)
    assert forgets(plan) == [2]
    assert "its history forgets 2 expired snapshots" in str(plan)
    assert plan.to_json()["stages"][0]["forgets"] == 2
    assert pointer(world) == before


def test_a_second_run_has_nothing_left_to_do(world: World) -> None:
    expire(world, grace="0s")
    now = committed(world, "s4") + 25 * DAY_MS
    world.process().expire(world.table, grace="0s", now=now, **QUIET)
    before = world.writer.document()
    again = world.process().expire(world.table, grace="0s", now=now, **QUIET)
    assert isinstance(again, PlanView)
    assert again.plan.stages == ()
    assert world.writer.document() == before


@pytest.mark.parametrize("policy", ["", "history: forever"])
def test_without_a_bound_nothing_is_forgotten(world: World, policy: str) -> None:
    expire(world, grace="0s")
    now = committed(world, "s7") + 900 * DAY_MS
    world.policy = policy
    plan = world.process().plan(world.table, now=now, **QUIET)
    assert plan.plan.stages == ()


def test_dropping_a_ref_alone_forgets_nothing(world: World) -> None:
    """What a drop names goes, and nothing else: its plan promises that."""
    expire(world, grace="0s")
    world.process().tag(world.table, "extra")
    now = committed(world, "s7") + 25 * DAY_MS
    assert forgets(world.process().plan(world.table, drop=["extra"], now=now)) == [0]


def test_the_account_of_runs_before_the_bound_goes_too(world: World) -> None:
    expire(world, grace="0s")
    assert ledger(world, "snapshots")
    world.clock.advance(26 * DAY_MS)
    world.process().expire(world.table, grace="0s", **QUIET)
    assert listed(world) == []
    assert ledger(world, "snapshots") == []
    assert [row["run"] for row in ledger(world, "ends")] != []


def test_an_undo_of_it_leaves_the_table_as_it_is(world: World) -> None:
    expire(world, grace="0s")
    now = committed(world, "s4") + 25 * DAY_MS
    quiet = world.process().expire(world.table, now=now, **QUIET)
    assert isinstance(quiet, RunStatus)
    undone = world.process().undo(str(quiet.run.id))
    assert undone.state == "undone"
    assert {each["snapshot-id"] for each in listed(world)} == ids(world, "s5", "s7")
    world.check()


def test_a_history_that_cannot_be_read_is_noted_and_stops_no_plan(world: World) -> None:
    expire(world, grace="0s")
    now = committed(world, "s7") + 25 * DAY_MS
    local(str(pointer(world))).write_bytes(b"[")
    plan = world.process().plan(world.table, now=now, **QUIET)
    assert plan.plan.stages == ()
    assert any("history of expired snapshots cannot be read" in note for note in plan.plan.notes)


def test_a_table_that_remembers_nothing_reads_nothing(world: World) -> None:
    plan = world.process().plan(world.table, **QUIET)
    assert forgets(plan) == [0]
    assert plan.plan.notes == ()
    assert PATH not in world.writer.document()["properties"]
    assert files(world) == []


# ---------------------------------------------------------------- an instant


@pytest.mark.parametrize("written", [str, format_instant])
def test_an_instant_bounds_what_is_remembered_and_goes_itself(world: World, written: object) -> None:
    """As in the proposal: kept is what was committed after it."""
    assert callable(written)
    world.policy = "history: forever"
    expire(world, grace="0s")
    at = committed(world, "s4")
    world.policy = f"history: {written(at)}"
    world.process().expire(world.table, grace="0s", **QUIET)
    assert {each["snapshot-id"] for each in listed(world)} == ids(world, "s5", "s7")


def test_an_instant_by_flag_and_by_property(world: World) -> None:
    expire(world, grace="0s")
    at = committed(world, "s4")
    world.process().expire(world.table, grace="0s", keep={"history": str(at)}, **QUIET)
    assert {each["snapshot-id"] for each in listed(world)} == ids(world, "s5", "s7")
    world.writer.change(lambda document: document["properties"].update({"firnline.history": format_instant(at)}))
    _, effective = world.process().policy(world.table)
    assert str(effective.history.value) == f"after {format_instant(at)}"


def test_the_plan_shows_the_instant(world: World) -> None:
    at = 1_700_000_000_000
    plan = world.process().plan(world.table, keep={"history": str(at)})
    assert f"its history remembers them: after {format_instant(at)}" in str(plan)
    assert plan.to_json()["stages"][0]["history"] == f"after {format_instant(at)}"


@pytest.mark.parametrize("text", ["2026-01-01", "2026-01-01T00:00:00", "20260101", "soon", "12"])
def test_an_instant_without_a_zone_is_refused(world: World, text: str) -> None:
    with pytest.raises(PolicyError, match="keep history: ") as refused:
        world.process().plan(world.table, keep={"history": text})
    assert "instant" in refused.value.hint
