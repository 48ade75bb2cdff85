"""A record is not an authority: whoever may write into a table's folder can forge a run, and no file may go by it.

Every digest in such a run is right. Only a key would tell it from a real one.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import firnline
from firnline.cli.main import run as run_command
from firnline.errors import RefusedForSafety, UnreadableMetadata
from firnline.journal.layout import RECORDS
from firnline.lake import open_lake
from firnline.ops.runs.status import RunStatus
from firnline.testing.manifests import AvroLayout
from firnline.testing.tables import QuickFiles, SmallTable
from harness.days import process_on_its_day
from harness.disks import local
from harness.forgery import Forgery, without_grace
from harness.processes import Process
from harness.world import World

KEY = "FIRNLINE_RECORDS_KEY"
OLD_S = 10 * 86_400


@pytest.fixture
def forged(world: World) -> Forgery:
    """A run of this table that its operator never made: committed long ago, its grace over."""
    real = process_on_its_day(world).plan(world.table, save=True).plan
    folder = process_on_its_day(world).run(str(real.run)).run.folder.folder
    made = Forgery.side_objects(folder)
    shutil.rmtree(local(folder))
    return made


def aged(path: Path) -> Path:
    """Returns the file, written long ago by what the store says."""
    at = path.stat().st_mtime - OLD_S
    os.utime(path, (at, at))
    return path


def a_file(folder: Path, name: str = "precious.parquet") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"precious")
    return aged(folder / name)


def purged(world: World, **said: Any) -> dict[str, str]:
    """Returns what became of each file, by a plain purge of the table: the outcome, and why."""
    (carried,) = process_on_its_day(world).purge_table(world.table, **said)
    assert carried.state == "done"
    return ends(carried)


def ends(carried: RunStatus) -> dict[str, str]:
    rows = [row for part in local(carried.run.folder.outcomes).iterdir() for row in pq.read_table(part).to_pylist()]
    return {row["path"]: f"{row['outcome']}: {row['why']}".rstrip(": ") for row in rows}


def live_units(world: World) -> list[str]:
    """Returns everything that live snapshots are read from."""
    truths = world.writer.ledger.truths
    return [path for snapshot in world.rows() for path in truths[snapshot].files if path.endswith(".avro")]


def live_data(world: World) -> list[str]:
    truths = world.writer.ledger.truths
    return sorted({path for snapshot in world.rows() for path in truths[snapshot].files if "/data/" in path})


# ---------------------------------------------------------------- what a forged list names


def test_a_forged_list_deletes_no_file_of_another_table(world: World, forged: Forgery) -> None:
    other = World.make(world.folder, name="other", ground=world.ground)
    named = live_data(other)
    for path in named:
        aged(local(path))
    forged.victims(named)
    forged.committed()
    assert set(purged(world).values()) == {"spared: lies outside the table's own folders"}
    assert all(local(path).exists() for path in named)


def test_what_the_plan_says_of_files_outside_is_no_authority(world: World, forged: Forgery) -> None:
    path = a_file(world.folder / "elsewhere")
    forged.victims([str(path)])
    forged.edit(lambda plan: plan["request"].update({"include_outside": True}))
    forged.committed()
    assert purged(world) == {str(path): "spared: lies outside the table's own folders"}
    assert path.exists()


def test_what_the_operator_says_now_is(world: World, forged: Forgery) -> None:
    path = a_file(world.folder / "elsewhere")
    forged.victims([str(path)])
    forged.committed()
    world.clock.advance(2 * 86_400_000)
    assert purged(world, include_outside=True) == {str(path): "deleted"}


def test_what_the_configuration_says_of_all_runs_is_not_said_of_one_that_is_only_somebodys_word(
    world: World, forged: Forgery
) -> None:
    path = a_file(world.folder / "elsewhere")
    forged.victims([str(path)])
    forged.committed()
    world.policy = "include-outside: true"
    assert purged(world) == {str(path): "spared: lies outside the table's own folders"}
    assert path.exists()


def test_no_live_file_goes_by_a_list_whose_maker_declared_all_units_walked(world: World, forged: Forgery) -> None:
    named = live_data(world)
    for path in named:
        aged(local(path))
    forged.victims(named)
    forged.walked(live_units(world))
    forged.committed()
    assert all(end.startswith("spared: needed again") for end in purged(world).values())
    world.check()


def test_no_name_leads_out_of_the_table_by_dots(world: World, forged: Forgery) -> None:
    path = a_file(world.folder / "elsewhere")
    forged.victims([f"{world.writer.location}/data/../../../elsewhere/{path.name}"])
    forged.committed()
    assert [end.partition(":")[0] for end in purged(world).values()] == ["spared"]
    assert path.exists()


def test_no_link_leads_out_of_the_table(world: World, forged: Forgery) -> None:
    path = a_file(world.folder / "elsewhere")
    (local(world.writer.location) / "data/in").symlink_to(path.parent)
    forged.victims([f"{world.writer.location}/data/in/{path.name}"])
    forged.committed()
    (end,) = purged(world).values()
    assert "a link leads out of them" in end
    assert path.exists()


def test_no_record_of_another_run_goes_by_a_forged_list(world: World, forged: Forgery) -> None:
    """Without it the snapshots of that run would be nobody's, and the next purge would take their files."""
    carried = process_on_its_day(world).expire(world.table, grace="1h")
    assert isinstance(carried, RunStatus)
    record = local(carried.run.folder.plan)
    events = sorted(local(carried.run.folder.events).iterdir())
    forged.victims([str(aged(path)) for path in (record, *events)])
    forged.committed()
    for each in process_on_its_day(world).purge_table(world.table):
        if each.run.id.stamp == forged.stamp:
            assert set(ends(each).values()) == {"spared: lies among firnline's own records"}
    assert record.exists()
    assert all(path.exists() for path in events)


def test_no_link_leads_to_the_record_of_another_run(world: World, forged: Forgery) -> None:
    carried = process_on_its_day(world).expire(world.table, grace="1h")
    assert isinstance(carried, RunStatus)
    record = aged(local(carried.run.folder.plan))
    (local(world.writer.location) / "data/in").symlink_to(record.parent)
    forged.victims([f"{world.writer.location}/data/in/plan.json"])
    forged.committed()
    process_on_its_day(world).purge_table(world.table)
    assert record.exists()


def test_what_a_writer_is_about_to_commit_is_too_young_for_a_forged_list(world: World, forged: Forgery) -> None:
    item = world.writer.data_file()
    forged.victims([item.path])
    forged.committed()
    assert "younger than a day" in purged(world)[item.path]
    world.writer.commit("append", [item])
    world.check()


# ---------------------------------------------------------------- what a forged run does to the table


def test_a_forged_plan_is_not_committed_before_the_operator_names_it(world: World, forged: Forgery) -> None:
    def expire_all(plan: dict[str, Any]) -> None:
        plan["meant"] = True
        without_grace(plan)
        plan["request"].update({"retain_last": 1, "older_than_ms": world.clock()})

    forged.edit(expire_all)
    before = world.writer.document()
    (waiting,) = process_on_its_day(world).resume(world.table)
    assert "not sealed with your key" in (waiting.waits or "")
    assert world.writer.document() == before


def foreign_snapshot(world: World) -> dict[str, Any]:
    """A snapshot of another table, which somebody would like to see in this one."""
    other = World.make(world.folder, name="other", ground=world.ground)
    document = other.writer.document()
    (head,) = (each for each in document["snapshots"] if each["snapshot-id"] == document["current-snapshot-id"])
    return {**head, "snapshot-id": 4711, "parent-snapshot-id": None}


def removal_of(snapshot: dict[str, Any]) -> dict[str, Any]:
    refs = {"stolen": {"snapshot-id": snapshot["snapshot-id"], "type": "tag"}}
    return {"snapshots": [snapshot], "refs": {"stolen": str(snapshot["snapshot-id"])}, "payload": {"refs": refs}}


def test_a_forged_undo_is_not_carried_on_by_a_plain_resume(world: World, forged: Forgery) -> None:
    forged.committed(removal=removal_of(foreign_snapshot(world)))
    forged.say({"state": "undoing", "detail": {"left_alone": [], "base": "", "location": ""}})
    before = world.writer.document()
    (waiting,) = process_on_its_day(world).resume(world.table)
    assert "not sealed with your key" in (waiting.waits or "")
    assert world.writer.document() == before


def test_a_forged_undo_brings_in_no_file_of_another_table(world: World, forged: Forgery) -> None:
    forged.committed(removal=removal_of(foreign_snapshot(world)))
    before = world.writer.document()
    with pytest.raises(RefusedForSafety, match="outside the table's own folders"):
        process_on_its_day(world).undo(f"{world.table}@{forged.stamp}")
    assert world.writer.document() == before


def claimed_undo(world: World, forged: Forgery) -> set[int]:
    """Says that an undo brought back all old snapshots of the table, which it always had, and one whose files are gone:
    such an undo is taken back. Returns those snapshots.
    """
    document = world.writer.document()
    named = {each["snapshot-id"] for each in document["refs"].values()}
    old = [each for each in document["snapshots"] if each["snapshot-id"] not in named]
    lost = {**old[0], "snapshot-id": 4711, "manifest-list": f"{world.writer.location}/metadata/lost.avro"}
    forged.committed(removal={"snapshots": [*old, lost], "refs": {}, "payload": {}})
    place = world.writer.place()
    digest = sha256(local(place).read_bytes()).hexdigest()
    forged.say({"state": "undoing", "detail": {"left_alone": [], "base": "", "location": place, "digest": digest}})
    return {each["snapshot-id"] for each in old}


def snapshots_of(world: World) -> set[int]:
    return {each["snapshot-id"] for each in world.writer.document()["snapshots"]}


def test_a_forged_undo_that_another_run_would_settle_takes_no_snapshot_out(world: World, forged: Forgery) -> None:
    mine = str(process_on_its_day(world).plan(world.table, save=True).plan.run)
    old = claimed_undo(world, forged)
    with pytest.raises(RefusedForSafety, match="stopped halfway"):
        process_on_its_day(world).commit(mine)
    assert old
    assert old <= snapshots_of(world)


def test_a_forged_undo_that_the_operator_names_takes_no_snapshot_out(world: World, forged: Forgery) -> None:
    old = claimed_undo(world, forged)
    with pytest.raises(RefusedForSafety, match="cannot be undone"):
        process_on_its_day(world).advance(f"{world.table}@{forged.stamp}")
    assert old
    assert old <= snapshots_of(world)


# ---------------------------------------------------------------- files outside, by a real run


@pytest.fixture
def with_imports(tmp_path: Path) -> SmallTable:
    """A table that once had files of another folder: only snapshots that expire need them."""
    table = SmallTable(QuickFiles(), f"file://{tmp_path}/t", AvroLayout(2))
    table.append(2, outside=True)
    table.overwrite(list(table.live()))
    table.append(2)
    table.publish()
    return table


def far_files(table: SmallTable) -> set[Path]:
    return set(local(f"{table.location}-elsewhere").rglob("*.parquet"))


ALL_OLD: dict[str, Any] = {"retain_last": 1, "older_than": "2100-01-01T00:00:00Z", "blast_radius": 1.0}


@pytest.mark.parametrize("now", [True, False])
def test_files_outside_go_with_the_command_that_says_so(with_imports: SmallTable, now: bool) -> None:
    assert len(far_files(with_imports)) == 2
    grace = "0s" if now else "1s"
    carried = firnline.open().expire(with_imports.location, include_outside=True, grace=grace, **ALL_OLD)
    assert isinstance(carried, RunStatus)
    if not now:
        time.sleep(1.1)
        (carried,) = firnline.open().purge_table(with_imports.location)
        assert carried.outcomes["spared"].files == 2
    assert carried.state == "done"
    assert len(far_files(with_imports)) == (0 if now else 2)


def test_files_outside_go_by_the_configuration(with_imports: SmallTable, tmp_path: Path) -> None:
    (tmp_path / "firnline.yaml").write_text("include-outside: true\n")
    lake = firnline.open(str(tmp_path / "firnline.yaml"))
    lake.expire(with_imports.location, grace="1s", **ALL_OLD)
    time.sleep(1.1)
    (done,) = lake.purge_table(with_imports.location)
    assert done.outcomes.keys() == {"deleted"}
    assert far_files(with_imports) == set()


def test_the_plan_says_that_the_purge_must_be_told_of_files_outside(with_imports: SmallTable) -> None:
    told = firnline.open().plan(with_imports.location, include_outside=True, **ALL_OLD)
    assert any("purge --include-outside" in note for note in told.plan.notes)
    assert not firnline.open().plan(with_imports.location, **ALL_OLD).plan.notes


def test_files_outside_go_with_a_purge_that_says_so(with_imports: SmallTable) -> None:
    firnline.open().expire(with_imports.location, include_outside=True, grace="1s", **ALL_OLD)
    time.sleep(1.1)
    assert run_command(["purge", with_imports.location, "--include-outside"]) == 0
    assert far_files(with_imports) == set()


# ---------------------------------------------------------------- where records are


def pin(world: World, place: str) -> None:
    world.writer.change(lambda document: document["properties"].update({RECORDS: place}))


@pytest.mark.parametrize("place", ["file:///x", "{0}/../elsewhere", "{0}-2/_firnline", "{0}", "s3://bucket/x"])
def test_a_property_that_leads_elsewhere_is_refused_with_the_way_out(world: World, place: str) -> None:
    pin(world, place.format(world.writer.location))
    process = process_on_its_day(world)
    for act in (process.runs, process.resume, process.purge_table, process.expire):
        with pytest.raises(
            RefusedForSafety, match="neither in its own folder nor in one that is configured"
        ) as refused:
            act(world.table)
        assert "records:" in refused.value.hint


def test_files_of_somebody_in_the_folder_that_a_property_names_stay(world: World, tmp_path: Path) -> None:
    theirs = [a_file(tmp_path / "lease", f"{number}.pdf") for number in range(20)]
    pin(world, f"file://{tmp_path}")
    with pytest.raises(RefusedForSafety):
        process_on_its_day(world).expire(world.table, grace="0s")
    assert all(path.exists() for path in theirs)


def test_a_property_that_leads_into_a_configured_folder_is_followed(world: World, tmp_path: Path) -> None:
    world.policy = f"records: file://{tmp_path}"
    carried = process_on_its_day(world).expire(world.table, grace="1h")
    assert isinstance(carried, RunStatus)
    assert world.writer.document()["properties"][RECORDS].startswith(f"file://{tmp_path}/")
    assert [each.run.id for each in process_on_its_day(world).runs(world.table)] == [carried.run.id]
    world.policy = ""
    with pytest.raises(RefusedForSafety, match="neither in its own folder"):
        process_on_its_day(world).runs(world.table)


# ---------------------------------------------------------------- with a key


@pytest.fixture
def keyed(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv(KEY, "the operator's own, on every machine")
    return world


def acts(world: World, run: str) -> list[Callable[[], object]]:
    process = process_on_its_day(world)
    return [
        lambda: process.purge(run),
        lambda: process.commit(run),
        lambda: process.undo(run),
        lambda: process.advance(run),
        lambda: process.purge_table(world.table),
        lambda: process.resume(world.table),
    ]


def refused_by_all(world: World, run: str) -> None:
    before, files = world.writer.document(), world.files()
    for act in acts(world, run):
        with pytest.raises(UnreadableMetadata, match=f"not sealed with {KEY}"):
            act()
    assert world.writer.document() == before
    assert world.files() == files


def test_with_a_key_runs_go_their_way(keyed: World) -> None:
    carried = process_on_its_day(keyed).expire(keyed.table, grace="1h")
    assert isinstance(carried, RunStatus)
    keyed.clock.advance(2 * 3_600_000)
    (done,) = process_on_its_day(keyed).purge_table(keyed.table)
    assert done.state == "done"
    assert done.run.is_sealed
    keyed.check()


def test_with_a_key_a_forged_run_is_refused_by_everything_that_acts(
    world: World, forged: Forgery, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged.victims([str(a_file(local(world.writer.location) / "data"))])
    forged.committed()
    monkeypatch.setenv(KEY, "the operator's own, on every machine")
    refused_by_all(world, f"{world.table}@{forged.stamp}")


def in_grace(world: World) -> RunStatus:
    carried = process_on_its_day(world).expire(world.table, grace="1h")
    assert isinstance(carried, RunStatus)
    world.clock.advance(2 * 3_600_000)
    return carried


def test_with_another_key_a_run_is_refused(keyed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run = str(in_grace(keyed).run.id)
    monkeypatch.setenv(KEY, "the key of another operator")
    refused_by_all(keyed, run)


def edit_event(carried: RunStatus, number: int, change: Callable[[dict[str, Any]], object]) -> None:
    path = local(carried.run.folder.events) / f"{number:06d}.json"
    said = json.loads(path.read_text())
    change(said)
    path.write_text(json.dumps(said))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda run: edit_event(run, 1, lambda said: said.update(at_ms=1)), id="a time"),
        pytest.param(lambda run: edit_event(run, 3, lambda said: said["detail"].update(base="x")), id="a detail"),
        pytest.param(lambda run: edit_event(run, 2, lambda said: said.update(seal="0" * 64)), id="a seal"),
        pytest.param(lambda run: Forgery(local(run.run.folder.folder)).edit(without_grace),
                     id="the plan, with its digest"),
        pytest.param(lambda run: Forgery(local(run.run.folder.folder)).victims(["/etc/hosts"]), id="the list"),
    ],
)  # fmt: skip
def test_with_a_key_every_change_of_a_record_is_noticed(keyed: World, change: Callable[[RunStatus], object]) -> None:
    carried = in_grace(keyed)
    change(carried)
    refused_by_all(keyed, str(carried.run.id))


def test_with_a_key_a_run_under_another_name_is_not_itself(keyed: World) -> None:
    """An undone run, copied, would be one that was never undone."""
    carried = in_grace(keyed)
    folder = local(carried.run.folder.folder)
    copy = folder.with_name("20300101T000000Z-abcdef")
    shutil.copytree(folder, copy)
    for act in acts(keyed, f"{keyed.table}@{copy.name}"):
        with pytest.raises(UnreadableMetadata, match="not sealed"):
            act()


def test_a_key_that_can_be_guessed_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "short")
    with pytest.raises(Exception, match=f"{KEY} is too short"):
        process_on_its_day(world).runs(world.table)


def test_without_a_key_a_run_of_another_machine_is_purged_by_what_is_true(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its list is only somebody's word there: all that is live is walked again, and what is old goes."""
    carried = in_grace(world)
    world.clock.advance(2 * 86_400_000)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another home"))
    done = process_on_its_day(world).purge(str(carried.run.id))
    assert not done.run.is_sealed
    assert done.outcomes.keys() == {"deleted"}
    world.check()


def test_a_process_without_a_home_still_works(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", os.devnull)
    carried = in_grace(world)
    assert not carried.run.is_sealed
    assert isinstance(process_on_its_day(world), Process)
    assert process_on_its_day(world).undo(str(carried.run.id)).state == "undone"


def test_a_user_without_any_home_has_no_folders_and_still_works(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a number that a container was started with, and that no password file knows."""

    def unknown(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.chdir(world.folder)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "FIRNLINE_CONFIG", "FIRNLINE_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    lake = open_lake()
    assert not lake.places.memory.answers()
    assert lake.catalogs == []
    carried = process_on_its_day(world).expire(world.table, grace="0s")
    assert isinstance(carried, RunStatus)
    assert carried.state == "done"
    world.check()
