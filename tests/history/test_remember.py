"""Expired snapshots are remembered: exactly, for as long as it was said, and in the commit that expires them."""

from __future__ import annotations

import json

import pytest

from firnline.errors import PolicyError
from firnline.ops.history import ledger as ledger_module
from harness.world import World
from tests.history.parts import expire, files, ids, ledger, listed, pointer


def test_what_expires_is_in_the_list_exactly_as_it_was_in_the_metadata(world: World) -> None:
    before = {each["snapshot-id"]: each for each in world.writer.document()["snapshots"]}
    expire(world)
    assert {each["snapshot-id"] for each in listed(world)} == ids(world, "s3", "s4", "s5", "s7")
    assert all(each == before[each["snapshot-id"]] for each in listed(world))


def test_the_pointer_is_a_property_and_the_proposals_field(world: World) -> None:
    expire(world)
    document = world.writer.document()
    assert document["expired-snapshots-path"] == pointer(world)
    assert "/_firnline/history/" in str(pointer(world))


def test_without_the_setting_nothing_is_kept(world: World) -> None:
    world.policy = ""
    expire(world)
    assert pointer(world) is None
    assert files(world) == []
    assert ledger(world, "snapshots") == []


def test_forever_keeps_what_is_older_than_any_bound(world: World) -> None:
    world.policy = "history: forever"
    expire(world)
    assert {each["snapshot-id"] for each in listed(world)} == ids(world, "s1", "s3", "s4", "s5", "s7")


def test_a_property_beats_the_file_and_a_flag_beats_the_property(world: World) -> None:
    world.writer.change(lambda document: document["properties"].update({"firnline.history": "forever"}))
    _, effective = world.process().policy(world.table)
    assert str(effective.history.source) == "table property firnline.history"
    expire(world, keep={"history": "20d"})
    assert {each["snapshot-id"] for each in listed(world)} == ids(world, "s5", "s7")


def test_a_history_that_is_no_duration_is_refused(world: World) -> None:
    with pytest.raises(PolicyError, match="keep history: "):
        expire(world, keep={"history": "soon"})


def test_what_grows_too_old_is_dropped_with_the_next_commit_and_the_boundary_itself_goes(world: World) -> None:
    expire(world, grace="0s")
    times = {each["snapshot-id"]: each["timestamp-ms"] for each in listed(world)}
    oldest = min(times.values())
    now = oldest + 25 * 86_400_000
    world.process().expire(world.table, grace="0s", now=now, retain_last=1, older_than=world.clock())
    assert oldest not in {each["timestamp-ms"] for each in listed(world)}
    assert set(times) - {each["snapshot-id"] for each in listed(world)} == {
        snapshot for snapshot, at in times.items() if at == oldest
    }


def test_undo_takes_its_snapshots_out_again(world: World) -> None:
    run = str(expire(world).run.id)
    first = pointer(world)
    world.process().undo(run)
    assert listed(world) == []
    assert pointer(world) != first
    assert [row["end"] for row in ledger(world, "ends")] == ["undone"]
    world.check()


def test_a_file_that_a_version_of_the_log_names_stays(world: World) -> None:
    run = str(expire(world).run.id)
    world.process().undo(run)
    expire(world)
    assert len(files(world)) == 3  # the log still has the versions that name the first two
    assert {each["snapshot-id"] for each in listed(world)} == ids(world, "s3", "s4", "s5", "s7")


def test_a_file_that_nothing_names_is_removed_by_the_next_run(world: World) -> None:
    run = str(expire(world).run.id)
    stray = files(world)[0].with_name("expired-snapshots-0123.json")
    stray.write_text("[]")
    foreign = stray.with_name("somebody-elses.json")
    foreign.write_text("{}")
    world.process().undo(run)
    expire(world)
    assert not stray.exists()
    assert foreign.exists()


def test_unknown_fields_and_large_numbers_survive(world: World) -> None:
    odd = {"n": 2**63 - 1, "text": "snö ☃", "big": 10**30}
    world.writer.change(lambda document: document["snapshots"][0].update({"some-tool": odd}))
    before = world.writer.document()["snapshots"][0]
    world.policy = "history: forever"
    expire(world)
    kept = next(each for each in listed(world) if each["snapshot-id"] == world.snapshots["s1"])
    assert kept["some-tool"] == odd
    assert kept == before


def test_the_ledger_says_why_and_when(world: World) -> None:
    carried = expire(world, grace="0s")
    rows = ledger(world, "snapshots")
    assert {int(row["snapshot_id"]) for row in rows} == ids(world, "s1", "s3", "s4", "s5", "s7")
    assert {row["run"] for row in rows} == {str(carried.run.id)}
    assert all(row["lost_reasons"] and row["archive_location"] is None for row in rows)
    assert {row["operation"] for row in rows} == {"append", "overwrite", "delete"}
    planned = carried.run.plan["victims"]["by_kind"]
    assert {kind: dict(tally) for kind, tally in rows[0]["run_victims"]} == planned
    (end,) = ledger(world, "ends")
    assert end["end"] == "purged"
    assert dict(end["outcomes"])["deleted"]["files"] == sum(each["files"] for each in planned.values())


def test_a_simple_reader_needs_nothing_but_json(world: World) -> None:
    expire(world)
    assert isinstance(json.loads(json.dumps(listed(world))), list)


def test_a_large_run_gives_the_policy_as_the_reason(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "MOST_STEPS", 1)
    expire(world)
    assert {row["lost_reasons"][0].partition(" by ")[0] for row in ledger(world, "snapshots")} == {"not kept"}


def test_the_account_of_a_run_before_the_bound_goes_with_the_commit_that_passes_it(world: World) -> None:
    expire(world, grace="0s")
    (first,) = (world.folder / "warehouse").glob("*/_firnline/ledger/snapshots/*")
    old = first.with_name("20200101T000000Z-abcdef.parquet")
    first.rename(old)
    strange = first.with_name("notes.parquet")
    strange.write_bytes(old.read_bytes())
    expire(world, grace="0s", older_than=world.clock(), retain_last=1)
    assert not old.exists()
    assert strange.exists()
