"""Stories that must end well: each is a way in which history, files or a person's word could get lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from firnline.app import moments
from firnline.app.verbs.plan_views import PlanView
from firnline.errors import (
    BlastRadiusExceeded,
    CollectionForbidden,
    DeletesFailed,
    FirnlineError,
    LeaseHeld,
    NoSuchTable,
    RefusedForSafety,
    TableMoved,
    TakenUpAgain,
)
from firnline.journal import lease as lease_module
from firnline.journal import parts
from firnline.journal.events import RunState
from firnline.journal.outcomes import outcome_keys
from firnline.journal.parts import read_part
from firnline.model.times import DAY_MS, HOUR_MS, MINUTE_MS
from firnline.ops.runs.status import RunStatus
from firnline.stores.objects import ObjectStores
from firnline.testing.faults import CHANGES, Answer, CountingFault, PortRequest
from harness.days import process_on_its_day
from harness.disks import local
from harness.processes import Process
from harness.world import World


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every file a batch of its own, so that a few victims are many batches."""
    monkeypatch.setattr(parts, "PART_ROWS", 1)


def expired(world: World, grace: str = "24h", process: Process | None = None, **options: Any) -> RunStatus:
    carried = (process or process_on_its_day(world)).expire(world.table, grace=grace, **options)
    assert isinstance(carried, RunStatus)
    return carried


def only_in(world: World, *names: str) -> frozenset[str]:
    """Returns the files that these snapshots need and no snapshot of the table does now."""
    truths = world.writer.ledger.truths
    kept = {path for snapshot in world.rows() for path in truths[snapshot].files}
    return frozenset(path for name in names for path in truths[world.snapshots[name]].files) - kept


def there(paths: frozenset[str]) -> set[str]:
    return {path for path in paths if local(path).exists()}


def outcomes(carried: RunStatus) -> dict[str, dict[str, str]]:
    """Returns what the run's record says of each file: outcome and reason, by path; the last attempt counts."""
    store, found = ObjectStores(), {}
    for keys in outcome_keys(store, carried.run.folder).values():
        for key in keys:
            for row in read_part(store, key).to_pylist():
                found[row["path"]] = {"outcome": row["outcome"], "why": row["why"]}
    return found


@dataclass
class AfterBatch:
    """Somebody acts once, right after the n-th batch of a purge was recorded and before the next begins."""

    batch: int
    action: Callable[[], Any]
    seen: int = 0

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        answer = request.send()
        if request.verb == "put_if_absent" and "/outcomes/" in request.key:
            self.seen += 1
            if self.seen == self.batch:
                self.action()
        return answer


# ---------------------------------------------------------------- runs that share files


@dataclass(frozen=True)
class TwoRuns:
    world: World
    shared: str
    first: RunStatus
    second: RunStatus


@pytest.fixture
def two_runs(quick_folder: Path) -> TwoRuns:
    """Two runs in grace. The file `shared` is needed by what either took out and by nothing else; only the second
    has it on its list, since at the time of the first plan another snapshot still needed it.
    """
    world = World.make(quick_folder / "two", history=False)
    days = iter((30, 20, 10, 1))
    for name, act in {
        "old": lambda: world.writer.append(2),
        "middle": lambda: world.writer.append(1),
        "new": world.writer.compact,
    }.items():
        world.clock.ahead_ms = -next(days) * DAY_MS
        world.snapshots[name] = act()
    world.clock.ahead_ms = 0
    first = expired(world, older_than=world.clock() - 25 * DAY_MS)
    shared = world.writer.ledger.truths[world.snapshots["old"]].data[0]
    second = expired(world, grace="0s", older_than=world.clock() - 5 * DAY_MS)
    return TwoRuns(world, shared, first, second)


def test_of_two_runs_that_share_a_file_the_later_one_waits(two_runs: TwoRuns) -> None:
    world = two_runs.world
    assert two_runs.second.state == "committed"
    assert two_runs.second.waits == f"the earlier run {two_runs.first.run.id}, which is committed"
    again = process_on_its_day(world).purge(two_runs.second.id)
    assert again.waits == two_runs.second.waits
    assert local(two_runs.shared).exists()


def test_after_the_first_of_two_runs_is_undone_the_later_spares_what_they_share(two_runs: TwoRuns) -> None:
    world = two_runs.world
    process_on_its_day(world).undo(two_runs.first.id)
    done = process_on_its_day(world).purge(two_runs.second.id)
    assert done.state == "done"
    said = outcomes(done)[two_runs.shared]
    assert said["outcome"] == "spared"
    assert "needed again" in said["why"]
    assert set(world.rows()) == {world.snapshots["old"], world.snapshots["new"]}
    world.check()


def test_after_the_first_of_two_runs_is_done_the_later_takes_what_they_share(two_runs: TwoRuns) -> None:
    """Waiting must not turn into keeping for ever."""
    world = two_runs.world
    world.clock.advance(25 * HOUR_MS)
    states = [each.state for each in process_on_its_day(world).resume(world.table)]
    assert states == ["done", "done"]
    assert not local(two_runs.shared).exists()
    world.check()


# ---------------------------------------------------------------- what others do in grace


@pytest.mark.parametrize("kind", ["data.parquet", "manifest.avro", "list.avro"])
def test_files_that_another_tool_deleted_in_grace_refuse_the_undo_by_name(world: World, kind: str) -> None:
    run = expired(world)
    gone = next(path for path in sorted(only_in(world, "s3", "s4", "s5", "s7")) if path.endswith(kind))
    local(gone).unlink()
    before = world.writer.place()
    with pytest.raises(RefusedForSafety) as refused:
        process_on_its_day(world).undo(run.id)
    assert gone in refused.value.message
    assert refused.value.exit_code == 14
    assert world.writer.place() == before
    world.clock.advance(25 * HOUR_MS)
    done = process_on_its_day(world).purge(run.id)
    assert done.state == "done"
    assert outcomes(done)[gone]["outcome"] == "missing"
    world.check()


def test_a_file_of_another_size_refuses_the_undo_too(world: World) -> None:
    run = expired(world)
    cut = next(path for path in sorted(only_in(world, "s3")) if path.endswith("data.parquet"))
    local(cut).write_bytes(local(cut).read_bytes()[:-1])
    with pytest.raises(RefusedForSafety, match=r"has \d+ bytes, not"):
        process_on_its_day(world).undo(run.id)


def test_an_expired_tag_that_was_created_again_stays_as_it_is_now(world: World) -> None:
    run = expired(world)
    assert run.expired_refs == ("aged",)
    world.writer.set_ref("aged", world.snapshots["s9"], "tag")
    back = process_on_its_day(world).undo(run.id)
    assert back.left_alone == ("aged",)
    assert world.writer.document()["refs"]["aged"]["snapshot-id"] == world.snapshots["s9"]
    assert set(world.rows()) == set(world.snapshots.values())
    world.check()


def test_a_tag_whose_snapshot_went_since_is_not_brought_back_to_nowhere(world: World) -> None:
    """`aged` expired while s4 stayed; then another run took s4. Undoing the first must not write a dangling tag."""
    world.policy = "keep: {within: 22d}"
    first = expired(world)
    assert first.expired_refs == ("aged",)
    assert world.snapshots["s4"] in world.rows()
    world.policy = ""
    second = expired(world)
    assert str(world.snapshots["s4"]) in second.expired
    back = process_on_its_day(world).undo(first.id)
    assert back.left_alone == ("aged",)
    world.check()
    process_on_its_day(world).undo(second.id)
    assert set(world.rows()) == set(world.snapshots.values())
    world.check()


@pytest.mark.parametrize("name", ["s1", "s3", "s5"])
def test_a_hold_on_a_snapshot_in_grace_spares_every_file_of_it(world: World, name: str) -> None:
    statistics = [each["statistics-path"] for each in world.writer.document()["statistics"]]
    run = expired(world)
    held, others = only_in(world, name), only_in(world, "s1", "s3", "s4", "s5", "s7") - only_in(world, name)
    process_on_its_day(world).hold_add(world.table, "lawsuit", world.snapshots[name])
    world.clock.advance(25 * HOUR_MS)
    done = process_on_its_day(world).purge(run.id)
    assert done.state == "done"
    assert there(held) == held
    assert there(others) == set()
    assert local(statistics[0]).exists() == (name == "s1")
    world.check()


def test_a_hold_on_a_snapshot_in_grace_still_lets_the_run_be_undone(world: World) -> None:
    run = expired(world)
    process_on_its_day(world).hold_add(world.table, "lawsuit", world.snapshots["s3"])
    process_on_its_day(world).undo(run.id)
    assert set(world.rows()) == set(world.snapshots.values())
    world.check()
    again = process_on_its_day(world).plan(world.table).plan
    assert str(world.snapshots["s3"]) in {each.id for each in again.keep}


def test_a_hold_in_grace_that_ran_out_before_the_purge_holds_nothing(world: World) -> None:
    run = expired(world)
    files = only_in(world, "s3")
    process_on_its_day(world).hold_add(world.table, "short", world.snapshots["s3"], world.clock() + HOUR_MS)
    world.clock.advance(25 * HOUR_MS)
    process_on_its_day(world).purge(run.id)
    assert there(files) == set()
    world.check()


def test_a_hold_outlives_the_run_that_took_its_snapshot_out(two_runs: TwoRuns) -> None:
    """The first run is done and spared the held snapshot; the second has a file of it on its list."""
    world = two_runs.world
    held = world.writer.ledger.truths[world.snapshots["old"]].files
    process_on_its_day(world).hold_add(world.table, "lawsuit", world.snapshots["old"])
    world.clock.advance(25 * HOUR_MS)
    states = [each.state for each in process_on_its_day(world).resume(world.table)]
    assert states == ["done", "done"]
    assert there(held) == held
    world.check()


@pytest.mark.usefixtures("small_batches")
def test_old_metadata_registered_again_between_two_batches_stops_the_harm(world: World) -> None:
    before, old = world.writer.place(), set(world.rows())
    process = process_on_its_day(world, AfterBatch(1, lambda: world.actions.register_old(before)))
    with pytest.raises(TakenUpAgain) as told:
        expired(world, "0s", process)
    (run,) = world.runs()
    said = outcomes(process_on_its_day(world).purge(run))
    deleted = frozenset(path for path, each in said.items() if each["outcome"] == "deleted")
    (lost,) = deleted
    assert lost in str(told.value)
    assert {each["outcome"] for path, each in said.items() if path not in deleted} == {"spared"}
    assert set(world.rows()) == old
    world.check(without=deleted)


@pytest.mark.usefixtures("small_batches")
def test_a_table_hold_in_the_middle_of_a_purge_stops_it_until_the_release(world: World) -> None:
    fault = AfterBatch(2, lambda: process_on_its_day(world).hold_add(world.table, "freeze"))
    victims = there(frozenset(world.files()))
    with pytest.raises(CollectionForbidden) as stopped:
        expired(world, "0s", process_on_its_day(world, fault))
    assert stopped.value.exit_code == 14
    assert len(victims - there(frozenset(victims))) == 2
    (run,) = world.runs()
    assert process_on_its_day(world).run(run).state == "purging"
    with pytest.raises(CollectionForbidden):
        process_on_its_day(world).purge(run)
    process_on_its_day(world).hold_release(world.table, "freeze")
    done = process_on_its_day(world).purge(run)
    assert done.state == "done"
    assert there(only_in(world, "s1", "s3", "s4", "s5", "s7")) == set()
    assert "gc.enabled" not in world.writer.document()["properties"]
    world.check()


def test_collection_forbidden_between_plan_and_commit_commits_nothing(world: World) -> None:
    run = str(process_on_its_day(world).plan(world.table, save=True).plan.run)
    world.writer.change(lambda document: document["properties"].update({"gc.enabled": "false"}))
    before = world.writer.place()
    with pytest.raises(CollectionForbidden):
        process_on_its_day(world).commit(run)
    assert world.writer.place() == before


def test_collection_forbidden_between_commit_and_purge_deletes_nothing(world: World) -> None:
    run = expired(world)
    world.writer.change(lambda document: document["properties"].update({"gc.enabled": "false"}))
    world.clock.advance(25 * HOUR_MS)
    files = world.files()
    with pytest.raises(CollectionForbidden):
        process_on_its_day(world).purge(run.id)
    assert world.files() == files
    world.writer.change(lambda document: document["properties"].pop("gc.enabled"))
    assert process_on_its_day(world).purge(run.id).state == "done"
    world.check()


# ---------------------------------------------------------------- the table is not where it was


def test_a_table_that_was_renamed_in_grace_is_not_found_and_loses_nothing(world: World) -> None:
    run = expired(world)
    world.actions.rename()
    world.clock.advance(25 * HOUR_MS)
    files = world.files()
    for act in (Process.purge, Process.undo):
        with pytest.raises(NoSuchTable) as gone:
            act(process_on_its_day(world), run.id)
        assert gone.value.exit_code == 10
    assert world.files() == files
    (done,) = process_on_its_day(world).purge_table(world.table)
    assert done.state == "done"
    world.check()


def test_a_table_that_was_recreated_in_grace_is_another_one_and_loses_nothing(world: World) -> None:
    """The new table even takes up the old one's files, as `register` and `add_files` do."""
    run = expired(world)
    world.actions.drop_and_recreate()
    world.clock.advance(25 * HOUR_MS)
    files = world.files()
    for act in (Process.purge, Process.undo, Process.advance):
        with pytest.raises(TableMoved) as moved:
            act(process_on_its_day(world), run.id)
        assert moved.value.exit_code == 12
    assert world.files() == files
    world.check()


def test_records_of_a_dropped_table_do_not_block_the_one_that_took_its_place(world: World) -> None:
    expired(world)
    world.actions.drop_and_recreate()
    world.writer.compact()
    world.clock.advance(30 * DAY_MS)
    done = expired(world, "0s")
    assert done.state == "done"
    assert len(world.rows()) == 1
    world.check()


# ---------------------------------------------------------------- processes


@dataclass
class Frozen:
    """Freezes its process just before the n-th delete is sent; others act meanwhile. Remembers what it sent then."""

    at: int
    meanwhile: Callable[[], Any]
    deletes: int = 0
    woken: bool = False
    sent: list[str] = field(default_factory=list)
    lock: Any = field(default_factory=threading.RLock)

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        with self.lock:
            if self.woken and request.verb in CHANGES:
                self.sent.append(f"{request.verb} {request.key}")
            if request.verb == "delete":
                self.deletes += 1
                if self.deletes == self.at:
                    self.meanwhile()
                    self.woken = True
            return request.send()


@pytest.mark.parametrize("how", ["the process was frozen", "the machine was suspended"])
def test_a_process_that_wakes_up_after_its_lease_was_taken_sends_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """One delete was on its way. The others that the same batch had checked before must not follow it."""
    real, lost = time.monotonic, [0.0]
    monkeypatch.setattr(lease_module.time, "monotonic", lambda: real() + lost[0])
    finished: list[RunStatus] = []

    def meanwhile() -> None:
        world.wait_for_lease()
        lost[0] = 60.0 if "process" in how else 0.0
        finished.extend(process_on_its_day(world).resume(world.table))

    frozen = Frozen(2, meanwhile)
    with pytest.raises(LeaseHeld) as held:
        expired(world, "0s", process_on_its_day(world, frozen))
    assert held.value.exit_code == 11
    assert [each.state for each in finished] == ["done"]
    assert frozen.sent == []
    world.check()


def test_a_lease_that_was_broken_stops_the_first_process_at_its_next_event(world: World) -> None:
    """Both hold a lease for a moment; the run's numbered events still let only one of them move it."""
    others: list[RunStatus] = []

    class Breaking:
        def pass_on(self, request: PortRequest[Answer]) -> Answer:
            if request.verb == "put_if_absent" and request.key.endswith("events/000002.json") and not others:
                run = f"{world.table}@{request.key.split('/')[-3]}"
                others.append(process_on_its_day(world).advance(run, break_lease=True))
            return request.send()

    with pytest.raises(LeaseHeld, match="another process moved this run"):
        expired(world, "0s", process_on_its_day(world, Breaking()))
    assert others[0].state == "done"
    world.check()


def test_a_run_commits_while_a_writer_never_stops(world: World) -> None:
    """Several commits a second, all through a plan and a commit whose every request is slow."""

    class Slow:
        def pass_on(self, request: PortRequest[Answer]) -> Answer:
            time.sleep(0.01)
            return request.send()

    stop, commits = threading.Event(), count()
    made = [0]

    def write() -> None:
        while not stop.is_set():
            world.writer.append()
            made[0] = next(commits) + 1
            time.sleep(0.2)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        run = expired(world, "0s", process_on_its_day(world, Slow()))
    finally:
        stop.set()
        writer.join()
    assert run.state == "done"
    assert made[0] > 3
    assert set(run.expired) == {str(world.snapshots[name]) for name in ("s1", "s3", "s4", "s5", "s7")}
    world.check()


@pytest.mark.parametrize(("minutes", "refused"), [(-6, True), (-4, False), (4, False), (6, True)])
def test_clocks_that_differ_by_more_than_five_minutes_refuse(world: World, minutes: int, refused: bool) -> None:
    world.clock.skew_ms = minutes * MINUTE_MS
    before = world.writer.place()
    if not refused:
        expired(world, process=world.process())
        return
    with pytest.raises(RefusedForSafety, match="clock") as skewed:
        expired(world, process=world.process())
    assert skewed.value.exit_code == 14
    assert world.writer.place() == before
    world.clock.skew_ms = 0
    world.process().resume(world.table)  # the lease was given back


@pytest.mark.parametrize("ahead_ms", [4 * MINUTE_MS, 3 * DAY_MS])
def test_an_age_that_a_clock_ahead_made_an_instant_of_takes_nothing_younger(
    world: World, monkeypatch: pytest.MonkeyPatch, ahead_ms: int
) -> None:
    """Two days old is one snapshot; by the clock that is ahead it is older than what is asked for."""
    world.clock.skew_ms = ahead_ms
    monkeypatch.setattr(moments, "now_ms", world.clock)
    with nullcontext() if ahead_ms < DAY_MS else pytest.raises(RefusedForSafety, match="clock"):
        world.process().expire(world.table, grace="0s", older_than=timedelta(days=2, milliseconds=ahead_ms // 2))
    world.clock.skew_ms = 0
    world.process().resume(world.table)
    assert world.snapshots["s8"] in world.rows()
    world.check()


# ---------------------------------------------------------------- what a run may and may not do


def test_a_run_that_would_remove_nearly_everything_is_refused(quick_folder: Path) -> None:
    world = World.make(quick_folder / "world", history=False)
    world.clock.ahead_ms = -30 * DAY_MS
    world.writer.append(60)
    world.clock.ahead_ms = 0
    world.writer.compact()
    before, files = world.writer.place(), world.files()
    with pytest.raises(BlastRadiusExceeded, match=r"cap is 90%") as refused:
        expired(world, "0s")
    assert refused.value.exit_code == 14
    run = str(process_on_its_day(world).plan(world.table, save=True).plan.run)
    with pytest.raises(BlastRadiusExceeded):
        process_on_its_day(world).commit(run)
    assert (world.writer.place(), world.files()) == (before, files)
    assert expired(world, "0s", blast_radius=1.0).state == "done"
    world.check()


def test_where_nothing_expires_nothing_is_written_at_all(world: World) -> None:
    world.policy = "keep: {within: 1y, tags: ['*']}"
    before = {path: path.read_bytes() for path in world.folder.rglob("*") if path.is_file()}
    result = process_on_its_day(world).expire(world.table, grace="0s")
    assert isinstance(result, PlanView)
    assert result.plan.expire == ()
    assert {path: path.read_bytes() for path in world.folder.rglob("*") if path.is_file()} == before


def test_a_saved_plan_of_which_nothing_is_left_is_cancelled_without_a_commit(world: World) -> None:
    run = str(process_on_its_day(world).plan(world.table, save=True).plan.run)
    world.policy = "keep: {within: 1y, tags: ['*']}"
    before = world.writer.place()
    carried = process_on_its_day(world).commit(run)
    assert carried.state == "cancelled"
    assert world.writer.place() == before


def test_a_policy_that_was_lengthened_after_the_plan_counts(world: World) -> None:
    run = str(process_on_its_day(world).plan(world.table, save=True).plan.run)
    world.policy = "keep: {within: 25d}"
    carried = process_on_its_day(world).commit(run)
    assert carried.expired == (str(world.snapshots["s1"]),)
    world.clock.advance(25 * HOUR_MS)
    process_on_its_day(world).purge(run)
    assert set(world.rows()) == set(world.snapshots.values()) - {world.snapshots["s1"]}
    world.check()


def test_a_policy_that_was_shortened_after_the_plan_takes_no_more_than_was_shown(world: World) -> None:
    world.policy = "keep: {within: 25d}"
    run = str(process_on_its_day(world).plan(world.table, save=True).plan.run)
    world.policy = ""
    assert process_on_its_day(world).commit(run).expired == (str(world.snapshots["s1"]),)


def test_metadata_that_fell_off_the_log_goes_with_the_purge_and_not_before(quick_folder: Path) -> None:
    properties = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "3"}
    world = World.make(quick_folder / "world", properties=properties)
    versions = {path for path in world.files() if path.endswith(".metadata.json")}
    run = expired(world)
    assert versions <= world.files()
    world.clock.advance(25 * HOUR_MS)
    done = process_on_its_day(world).purge(run.id)
    assert done.state == "done"
    log = [each["metadata-file"] for each in world.writer.document()["metadata-log"]]
    left = {path for path in world.files() if path.endswith(".metadata.json")}
    assert len(log) == 3
    assert left == {world.writer.place(), *log}
    world.check()


@dataclass
class Stubborn:
    """A store that does not let some files go: the delete is refused and the file stays."""

    keys: frozenset[str]
    tried: list[str] = field(default_factory=list)

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if request.verb == "delete":
            self.tried.append(request.key)
            if request.key in self.keys:
                return request.silence()
        return request.send()


def test_deletes_that_failed_are_tried_again_and_nothing_else(world: World) -> None:
    run = expired(world)
    world.clock.advance(25 * HOUR_MS)
    victims = only_in(world, "s1", "s3", "s4", "s5", "s7")
    stubborn = frozenset(sorted(path for path in victims if "data.parquet" in path)[:2])
    for attempt in (1, 2):
        fault = Stubborn(stubborn)
        with pytest.raises(DeletesFailed, match="2 files") as failed:
            process_on_its_day(world, fault).purge(run.id)
        assert failed.value.exit_code == 3
        assert set(fault.tried) >= victims if attempt == 1 else set(fault.tried) == stubborn
    counted = CountingFault()
    done = process_on_its_day(world, counted).purge(run.id)
    assert {key for verb, key in counted.trace if verb == "delete"} == stubborn
    assert done.state == "done"
    assert sum(each.files for each in done.outcomes.values()) == len(outcomes(done))
    assert there(victims) == set()
    world.check()


def test_a_failed_delete_that_came_back_to_life_is_spared_at_the_next_try(world: World) -> None:
    run = expired(world)
    world.clock.advance(25 * HOUR_MS)
    path = next(each for each in sorted(only_in(world, "s5")) if "data.parquet" in each)
    with pytest.raises(DeletesFailed):
        process_on_its_day(world, Stubborn(frozenset({path}))).purge(run.id)
    world.writer.commit("append", [world.writer.ledger.items[path]])
    done = process_on_its_day(world).purge(run.id)
    assert outcomes(done)[path]["outcome"] == "spared"
    assert done.state == "done"
    world.check()


# ---------------------------------------------------------------- Ctrl-C

PURGING = """
import sys, time
from firnline.journal import parts
from firnline.stores.delete import ObjectDelete
parts.PART_ROWS = 1
real = ObjectDelete.delete
def slowly(self, doomed, *rest):
    said = real(self, doomed, *rest)
    if "_firnline" not in doomed[0].key:
        print("deleted", doomed[0].key, flush=True)
        time.sleep(0.5)
    return said
ObjectDelete.delete = slowly
from firnline.cli.main import main
main(sys.argv[1:])
"""


def test_ctrl_c_stops_between_two_batches_and_the_run_goes_on_later(world: World) -> None:
    environment = {**os.environ, "PYICEBERG_CATALOG__LAKE__TYPE": "sql",
                   "PYICEBERG_CATALOG__LAKE__URI": world.pointers.uri}  # fmt: skip
    arguments = ["expire", world.table, "--grace", "0s", "--yes", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-c", PURGING, *arguments], env=environment, cwd=world.folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().startswith("deleted")
    process.send_signal(signal.SIGINT)
    rest, problem = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(problem[problem.index("{") :])["error"]["kind"] == "interrupted"
    assert rest.count("deleted") <= 1
    (run,) = world.runs()
    state, recorded = world.process().run(run).run.state, world.process().run(run).outcomes
    assert state is RunState.PURGING
    assert recorded["deleted"].files == 1 + rest.count("deleted")
    world.check()
    assert world.process().advance(run).state == "done"
    assert there(only_in(world, "s1", "s3", "s4", "s5", "s7")) == set()
    world.check()


def test_every_refusal_says_what_to_do_next(world: World) -> None:
    """A person who meets one of these at night must not have to read the source."""
    run = expired(world)
    world.writer.change(lambda document: document["properties"].update({"gc.enabled": "false"}))
    world.clock.advance(25 * HOUR_MS)
    met: list[FirnlineError] = []
    for act in (
        lambda: process_on_its_day(world).purge(run.id),
        lambda: process_on_its_day(world).expire(world.table),
        lambda: process_on_its_day(world).undo("lake.db.nothing@x"),
        lambda: process_on_its_day(world).commit(run.id),
    ):
        with pytest.raises(FirnlineError) as refused:
            act()
        met.append(refused.value)
    assert all(each.hint for each in met)
