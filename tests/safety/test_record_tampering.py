"""The run's own record is no more trusted than anything else: what was changed in it must never cost a live file."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from firnline.errors import RefusedForSafety, UnreadableMetadata, UsageError
from firnline.formats.iceberg.table import IcebergFormat
from firnline.journal.layout import RECORDS
from firnline.model.files import FileKind
from firnline.model.holds import Hold
from firnline.ops.runs.status import RunStatus
from firnline.policy.holds import format_hold
from firnline.policy.parse import parse_policy
from firnline.stores.objects import ObjectStores
from harness.crowds import Crowd
from harness.days import process_on_its_day
from harness.disks import local
from harness.forgery import Forgery
from harness.processes import Process
from harness.world import World

FULL = bool(os.environ.get("FIRNLINE_FULL"))


@pytest.fixture
def in_grace(world: World) -> RunStatus:
    carried = process_on_its_day(world).expire(world.table, grace="1h")
    assert isinstance(carried, RunStatus)
    return carried


def folder(carried: RunStatus, name: str) -> Path:
    return local(getattr(carried.run.folder, name))


def live_file(world: World) -> str:
    truths = world.writer.ledger.truths
    return next(path for path in truths[next(iter(world.rows()))].files if "/data/" in path)


def add_row(part: Path, path: str) -> None:
    table = pq.read_table(part)
    row = table.slice(0, 1).to_pylist()[0] | {"identity": path, "key": path}
    pq.write_table(pa.concat_tables([table, pa.Table.from_pylist([row], table.schema)]), part)


def purge(world: World, carried: RunStatus) -> RunStatus:
    world.clock.advance(2 * 3_600_000)
    return process_on_its_day(world).purge(str(carried.run.id))


def victims_part(carried: RunStatus) -> Path:
    return min(folder(carried, "victims").iterdir())


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(add_row, id="a live file was added to the list"),
        pytest.param(lambda part, live: part.write_bytes(part.read_bytes()[:-7]), id="the list was cut"),
        pytest.param(lambda part, live: part.unlink(), id="a part of the list is gone"),
        pytest.param(lambda part, live: shutil.copy(part, part.with_name("0-00099.parquet")), id="a part was added"),
    ],
)
def test_a_list_that_was_changed_deletes_nothing_and_can_be_undone(
    world: World, in_grace: RunStatus, change: Callable[[Path, str], object]
) -> None:
    live = live_file(world)
    change(victims_part(in_grace), live)
    before = {path for path in local(world.writer.location).rglob("*") if "_firnline" not in path.parts}
    with pytest.raises(UnreadableMetadata):
        purge(world, in_grace)
    assert before == {path for path in local(world.writer.location).rglob("*") if "_firnline" not in path.parts}
    assert process_on_its_day(world).undo(str(in_grace.run.id)).state == "undone"
    world.check()


def test_units_that_somebody_declared_walked_are_walked_all_the_same(world: World, in_grace: RunStatus) -> None:
    """A forged part would hide from the purge that a path on its list is needed again."""
    listed = pq.read_table(victims_part(in_grace)).column("key").to_pylist()
    back = next(path for path in listed if "/data/" in path)
    world.writer.commit("append", [world.writer.ledger.items[back]])
    document = world.writer.document()
    for part in folder(in_grace, "walked").iterdir():
        for snapshot in document["snapshots"]:
            add_row(part, snapshot["manifest-list"])
    assert purge(world, in_grace).state == "done"
    assert local(back).exists()
    world.check()


@pytest.mark.parametrize("damage", ["[]", '{"version": 1}', "{"])
def test_a_plan_that_cannot_be_read_is_refused_by_name(world: World, in_grace: RunStatus, damage: str) -> None:
    folder(in_grace, "plan").write_text(damage)
    with pytest.raises(UnreadableMetadata, match=r"plan\.json|lacks"):
        process_on_its_day(world).runs(world.table)


GARBAGE: list[Any] = [None, "x", -5, [5]]
"""At the small count every other field gets the first two of them, and the fields between the last two."""


@pytest.mark.parametrize("name", ["plan", "events"])
def test_garbage_in_a_record_is_refused_by_name_or_does_no_harm(world: World, in_grace: RunStatus, name: str) -> None:
    """Whatever a field says, nobody stumbles over it: firnline's own errors, or none."""
    place = folder(in_grace, name)
    said: list[str] = []
    for file in [place] if name == "plan" else sorted(place.iterdir()):
        whole = file.read_text()
        for spoiled in spoilt(json.loads(whole)):
            file.write_text(json.dumps(spoiled))
            said += refusals(world, acts=name == "plan")
        file.write_text(whole)
    assert len(said) > 10
    assert all(place.name in each for each in said)
    assert purge(world, in_grace).state == "done"
    world.check()


def of_request(**said: Any) -> dict[str, Any]:
    return {"request": said}


USED: list[dict[str, Any]] = [
    {"kind": None}, {"kind": "else"}, {"kind": ["expiry"]}, {"policy": None},
    {"beside": None}, {"beside": {}}, {"beside": {"expire": 5}}, {"beside": {"expire": [5]}},
    {"beside": {"expire": [{"kind": 5, "name": "x"}]}}, {"beside": {"expire": [{"kind": "changelog"}]}},
    {"keep": None}, {"keep": [5]}, {"keep": [{"snapshot": 5, "refs": []}]}, {"keep": [{"snapshot": "5", "refs": [5]}]},
    {"seen": {"t": 5}}, {"victims": {"files": 1, "bytes": 1, "by_kind": {"data": 5}}},
    {"parts": {"victims": {"x": 5}, "walked": {}}}, {"parts": {"victims": {}, "walked": {"x": None}}},
    of_request(older_than_ms="x"), of_request(now_ms=1.5), of_request(retain_last=True), of_request(grace_ms="1h"),
    of_request(keep=None), of_request(keep=["a"]), of_request(keep={"a": 5}), of_request(blast_radius="x"),
    of_request(clean="no"), of_request(sole_writer=None), of_request(include_outside=5), of_request(drop="abc"),
    of_request(drop=[5]), of_request(drop=None), of_request(more=1),
]  # fmt: skip


def test_a_forged_plan_in_which_nothing_makes_sense_is_refused_before_anything_is_done(world: World) -> None:
    """Its digests are right, and the operator names the run: what is used of it later is looked at when it is read."""
    process = process_on_its_day(world)
    run = str(process.plan(world.table, save=True).plan.run)
    made = Forgery(local(process.run(run).run.folder.folder))
    before, document = json.loads((made.folder / "plan.json").read_text()), world.writer.document()
    for spoiled in USED:
        made.edit(lambda plan, said={**before, **spoiled}: plan.update(said))  # type: ignore[misc]
        for act in (process.run, process.commit, process.advance, process.undo, process.purge):
            with pytest.raises(UnreadableMetadata, match="or a strange one"):
                act(run)
    assert world.writer.document() == document
    made.edit(lambda plan: [plan.update(before), plan.pop("refused"), plan.pop("conflict")])
    assert process.commit(run).state == "committed", "what does not say that it is refused is not"


def refusals(world: World, acts: bool) -> Iterator[str]:
    """Yields why a run is refused to somebody who looks at it; or wants to go on with it, where it still waits."""
    for ask in (Process.runs, Process.resume) if acts else (Process.runs,):
        try:
            ask(process_on_its_day(world), world.table)
        except RefusedForSafety as problem:
            yield problem.message


def spoilt(document: Any) -> Iterator[Any]:
    """Yields the document with garbage in the place of each of its fields, and of the fields of those."""
    yield from GARBAGE
    for number, (field, below) in enumerate(document.items() if isinstance(document, dict) else ()):
        yield {other: value for other, value in document.items() if other != field}
        some = GARBAGE if FULL else GARBAGE[number % 2 * 2 :][:2]
        inner = some if not isinstance(below, dict) else spoilt(below)
        yield from ({**document, field: each} for each in inner)


def test_a_plan_that_was_edited_is_not_committed(world: World) -> None:
    """It says what may go, by which rules, and whether that is too much."""
    saved = process_on_its_day(world).plan(world.table, save=True, blast_radius=0.0)
    run = str(saved.plan.run)
    record = local(process_on_its_day(world).run(run).run.folder.plan)
    edited = json.loads(record.read_text())
    assert edited["refused"]
    record.write_text(json.dumps({**edited, "refused": None}))
    before = world.writer.document()
    with pytest.raises(UnreadableMetadata, match="not as it was written"):
        process_on_its_day(world).commit(run)
    assert world.writer.document() == before


def test_a_list_that_somebody_laid_beside_ours_before_the_commit_is_not_sealed_with_it(world: World) -> None:
    """Metadata that falls off the log is added to the list at the commit: nothing else may come in with it."""
    run = str(process_on_its_day(world).plan(world.table, save=True).plan.run)
    victims = local(process_on_its_day(world).run(run).run.folder.victims)
    live = live_file(world)
    place = IcebergFormat(ObjectStores()).purge_order.index(FileKind.METADATA)
    rogue = victims / f"{place}-00042.parquet"
    shutil.copy(min(victims.iterdir()), rogue)
    add_row(rogue, live)
    with pytest.raises(UnreadableMetadata, match="no commit of this run forgot"):
        process_on_its_day(world).commit(run)
    assert local(live).exists()
    rogue.unlink()
    assert process_on_its_day(world).resume(world.table)[0].state == "committed"
    world.check()


def test_a_run_without_events_is_refused(world: World, in_grace: RunStatus) -> None:
    shutil.rmtree(folder(in_grace, "events"))
    with pytest.raises(UnreadableMetadata, match="lacks its events"):
        process_on_its_day(world).runs(world.table)


def elsewhere(world: World, folder: Path) -> Process:
    """A process of another machine, whose settings keep records in another place."""
    process = process_on_its_day(world)
    process.places.config = replace(process.places.config, settings=parse_policy(f"records: file://{folder}").settings)
    return process


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_plan_that_is_gone_stops_every_other_run_until_its_own_has_ended(
    world: World, in_grace: RunStatus, has_ended: bool
) -> None:
    """A rule of the bucket removes what is old, and the plan is older than the events. Where versions are kept it can
    come back; what another run purged meanwhile cannot.
    """
    if has_ended:
        purge(world, in_grace)
    plan = folder(in_grace, "plan")
    hidden = plan.rename(world.folder / "plan.json")
    world.writer.compact()  # what the first run's snapshots need is needed by no newer one any more
    world.writer.append(1)
    everything: Any = {"grace": "0s", "older_than": world.clock() + 1_000, "retain_last": 1, "blast_radius": 1.0}
    if has_ended:
        assert process_on_its_day(world).expire(world.table, **everything).state == "done"
        return
    with pytest.raises(UnreadableMetadata, match="lacks its plan"):
        process_on_its_day(world).expire(world.table, **everything)
    hidden.rename(plan)
    assert process_on_its_day(world).undo(str(in_grace.run.id)).state == "undone"


def test_a_table_in_a_folder_called_events_has_lost_no_plan(tmp_path: Path) -> None:
    crowd = Crowd.make(tmp_path)
    crowd.table("events")
    for grace in ("1h", "0s"):
        crowd.process().expire(
            crowd.name("events"), older_than=crowd.clock(), retain_last=1, grace=grace, blast_radius=1.0
        )
    assert [run.state for run in crowd.process().runs(crowd.name("events"))] == ["committed"]
    crowd.check()


def test_a_run_that_died_before_it_had_a_plan_stops_nobody(world: World, in_grace: RunStatus) -> None:
    purge(world, in_grace)
    first = folder(in_grace, "events") / "000001.json"
    events = first.parent.parent.with_name("20260101T000000Z-abcdef") / "events"
    events.mkdir(parents=True)
    shutil.copy(first, events)
    assert process_on_its_day(world).runs(world.table)[-1].state == "done"


def test_records_stay_where_the_first_commit_pinned_them(world: World, in_grace: RunStatus, tmp_path: Path) -> None:
    """Another machine's `records` would give it another lease, and no knowledge of what can still be undone."""
    seen = elsewhere(world, tmp_path).runs(world.table)
    assert [each.id for each in seen] == [str(in_grace.run.id)]
    assert world.writer.document()["properties"][RECORDS] == in_grace.run.folder.root


def test_a_run_that_was_planned_in_another_place_is_not_found_any_more(world: World, tmp_path: Path) -> None:
    other = elsewhere(world, tmp_path)
    saved = other.plan(world.table, save=True).plan
    process_on_its_day(world).expire(world.table, grace="1h")
    with pytest.raises(UsageError, match="no such run"):
        other.commit(str(saved.run))


def test_metadata_of_another_place_that_fell_off_the_log_stays(world: World, tmp_path: Path) -> None:
    foreign = tmp_path / "v1.metadata.json"
    foreign.write_text("{}")
    entry = {"timestamp-ms": 1, "metadata-file": f"file://{foreign}"}
    asked = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}

    def plant(document: dict[str, Any]) -> None:
        document["metadata-log"] = [entry, *(document.get("metadata-log") or ())]
        document["properties"] = {**document["properties"], **asked}

    world.writer.change(plant)
    process_on_its_day(world).expire(world.table, grace="0s")
    assert foreign.exists()


@pytest.mark.parametrize("name", ["", " ", "a\nb", " a"])
def test_names_that_nobody_can_carry_are_refused_before_anything_is_written(world: World, name: str) -> None:
    process = process_on_its_day(world)
    before = world.writer.document()
    with pytest.raises(UsageError):
        process.hold_add(world.table, name)
    with pytest.raises(UsageError):
        process.tag_add(world.table, name)
    assert world.writer.document() == before


def test_a_tag_that_is_kept_for_no_time_is_refused(world: World) -> None:
    with pytest.raises(UsageError):
        process_on_its_day(world).tag_add(world.table, "z", age_ms=0)


def test_a_hold_takes_no_ref_of_somebody_else(world: World) -> None:
    head = world.writer.document()["current-snapshot-id"]
    world.writer.set_ref("firnline-hold-x", head, "branch")
    with pytest.raises(UsageError, match="firnline-hold-x"):
        process_on_its_day(world).hold_add(world.table, "x", head)


def test_releasing_a_hold_that_somebody_wrote_by_hand_leaves_collection_as_it_is(world: World) -> None:
    key, value = format_hold(Hold("case", "ann", "by hand", None))
    world.writer.change(lambda document: document["properties"].update({key: value, "gc.enabled": "false"}))
    process_on_its_day(world).hold_release(world.table, "case")
    assert world.writer.document()["properties"]["gc.enabled"] == "false"


def test_a_hold_counts_today_even_for_a_decision_about_tomorrow(world: World) -> None:
    """Its tag is gone, so that only the hold itself speaks for the snapshot."""
    process, old = process_on_its_day(world), world.snapshots["s1"]
    process.hold_add(world.table, "case", old, until_ms=world.clock() + 3_600_000)
    world.writer.change(lambda document: document["refs"].pop("firnline-hold-case"))
    plan = process.plan(world.table, now=world.clock() + 10 * 86_400_000).plan
    assert str(old) in {each.id for each in plan.keep}
