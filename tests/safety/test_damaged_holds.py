"""A hold that cannot be read: nobody knows what it protects, so nothing goes, and nothing else is in the way."""

from __future__ import annotations

import pytest

from firnline.errors import CollectionForbidden, RefusedForSafety
from firnline.model.times import HOUR_MS
from firnline.ops.reachability.live_roots import live_roots
from harness.days import process_on_its_day
from harness.world import World


def damage(world: World) -> None:
    world.writer.change(lambda document: document["properties"].update({"firnline.hold.case": "{}"}))


def test_a_purge_refuses_and_the_run_can_be_undone(world: World) -> None:
    run = process_on_its_day(world).expire(world.table, grace="1h").id
    damage(world)
    world.clock.advance(2 * HOUR_MS)
    files = world.files()
    with pytest.raises(CollectionForbidden, match=r"firnline\.hold\.case"):
        process_on_its_day(world).purge(run)
    assert world.files() >= files
    process_on_its_day(world).undo(run)
    assert set(world.rows()) >= set(world.snapshots.values())
    world.check()


def test_a_run_that_was_planned_before_commits_nothing(world: World) -> None:
    run = str(world.process().plan(world.table, save=True).plan.run)
    damage(world)
    before = world.writer.place()
    with pytest.raises(CollectionForbidden):
        world.process().commit(run)
    assert world.writer.place() == before
    world.process().hold_release(world.table, "case")
    world.process().commit(run)
    world.check()


def test_nobody_takes_the_other_roots_for_all_that_the_table_needs(world: World) -> None:
    """It may name a snapshot that a run took out long ago: a search that other tables share must not go on without."""
    damage(world)
    work = world.process().places.table_context(world.table)
    with pytest.raises(RefusedForSafety, match="nobody can tell"):
        list(live_roots(work, work.source.load(), world.clock()))


def test_a_tag_of_such_a_hold_is_nobodys_to_remove_and_a_branch_of_its_name_stays(world: World) -> None:
    head = world.snapshots["s9"]
    damage(world)
    world.writer.set_ref("firnline-hold-case", head, "branch")
    world.process().hold_release(world.table, "case")
    assert world.writer.document()["refs"]["firnline-hold-case"]["type"] == "branch"
