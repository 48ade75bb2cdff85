"""A commit names a file again between a batch's last look at the table and its delete: the run stops and names it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from firnline.errors import DeletesFailed, Interrupted, TakenUpAgain
from firnline.journal import parts
from firnline.journal.events import RunState
from firnline.local.delete import LocalDeleteMany
from firnline.stores.objects import ObjectStores
from firnline.testing.faults import Answer, Died, PortRequest
from harness.days import process_on_its_day
from harness.disks import local
from harness.neighbours import Neighbourhood
from harness.world import World


@dataclass
class AtDelete:
    """Somebody acts before the n-th delete arrives: after the last look at the table."""

    at: int
    action: Callable[[], Any]
    deleted: list[str] = field(default_factory=list)

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if request.verb == "delete":
            self.deleted.append(request.key)
            if len(self.deleted) == self.at:
                self.action()
        return request.send()


@pytest.fixture(params=[1, 10_000], ids=["another batch follows", "the last batch"])
def world(world: World, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(parts, "PART_ROWS", request.param)
    return world


def lost(world: World) -> set[str]:
    named = {path for snapshot in world.rows() for path in world.writer.ledger.truths[snapshot].data}
    return {path for path in named if not local(path).exists()}


def test_the_run_stops_and_names_what_was_lost(world: World) -> None:
    fault = AtDelete(1, world.actions.re_add)
    with pytest.raises(TakenUpAgain) as told:
        process_on_its_day(world, fault).expire(world.table, grace="0s")
    gone = lost(world)
    assert gone
    assert all(path in str(told.value) for path in gone)
    assert f"firnline check {world.table}" in told.value.hint
    assert told.value.exit_code == 14
    (run,) = world.runs()
    done = process_on_its_day(world).purge(run)
    assert done.state == "done"
    assert lost(world) == gone, "what was not sent yet is spared"


def test_what_was_named_by_a_link_is_lost_all_the_same(world: World) -> None:
    road = world.folder / "road"
    road.symlink_to(local(world.writer.location))
    ledger, mine = world.writer.ledger, world.writer.location

    def take_up_by_the_link() -> None:
        by_link = replace(ledger.items[fault.deleted[0]], path=fault.deleted[0].replace(mine, f"file://{road}"))
        ledger.contents[by_link.path] = ledger.contents[fault.deleted[0]]
        world.writer.commit("append", [by_link])

    fault = AtDelete(1, take_up_by_the_link)
    with pytest.raises(TakenUpAgain) as told:
        process_on_its_day(world, fault).expire(world.table, grace="0s")
    assert fault.deleted[0] in str(told.value)


def _drop(world: World) -> None:
    world.pointers.drop(world.writer.name)


def _replace(world: World) -> None:
    """An older version takes the table's place, as one of its own, under the same name."""
    world.pointers.drop(world.writer.name)
    world.pointers.rename("importer", world.writer.name)


def _hold(world: World) -> None:
    world.process().hold_add(world.table, "case")


@pytest.mark.parametrize("stop", [_drop, _replace, _hold])
def test_what_another_table_lost_is_named_whatever_stops_the_look(world: World, stop: Callable[[World], None]) -> None:
    around = Neighbourhood.of(world)

    def take_in_and_stop() -> None:
        assert around.imported()
        stop(world)

    fault = AtDelete(1, take_in_and_stop)
    with pytest.raises(TakenUpAgain) as told:
        process_on_its_day(world, fault).expire(world.table, grace="0s")
    assert any(path in str(told.value) for path in fault.deleted if path.endswith("-data.parquet"))


def test_what_the_table_lost_is_named_though_another_catalog_is_away(world: World) -> None:
    Neighbourhood.of(world)

    def take_up_and_hide() -> None:
        world.actions.re_add()
        world.side_objects[0].path.write_bytes(b"no database")

    with pytest.raises(TakenUpAgain) as told:
        process_on_its_day(world, AtDelete(1, take_up_and_hide)).expire(world.table, grace="0s")
    assert any(path in str(told.value) for path in lost(world))


@dataclass
class DiesInBatch(AtDelete):
    """The process dies around the record of what became of that batch."""

    is_recorded: bool = False
    fails_first: bool = False
    is_dead: bool = False

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if self.is_dead:
            raise Died("dead")
        if self.fails_first and request.verb == "delete":
            self.fails_first = False
            return request.silence()
        if len(self.deleted) < self.at or "/outcomes/" not in request.key:
            return super().pass_on(request)
        if self.is_recorded:
            request.send()
        self.is_dead = True
        raise Died("died")


def lost_in(world: World, dying: DiesInBatch) -> list[str]:
    """Returns the data files that are gone with the batch in which a purge died."""
    with pytest.raises(Died):
        process_on_its_day(world, dying).expire(world.table, grace="0s")
    assert dying.is_dead
    world.wait_for_lease()
    gone = [path for path in dying.deleted if path.endswith("-data.parquet") and not local(path).exists()]
    assert gone
    return gone


def check_told_and_then_done(world: World, gone: list[str]) -> None:
    with pytest.raises(TakenUpAgain) as told:
        process_on_its_day(world).resume(world.table)
    assert all(path in str(told.value) for path in gone)
    (done,) = process_on_its_day(world).resume(world.table)
    assert done.state == "done"


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("recorded", "fails_first"),
    [(False, False), (True, False), (False, True)],
    ids=["before its record", "after its record", "after one that failed"],
)
@pytest.mark.parametrize("who", ["the table", "another table"])
def test_what_was_lost_in_the_batch_in_which_a_process_died_is_named_by_the_next(
    world: World, who: str, recorded: bool, fails_first: bool
) -> None:
    around = Neighbourhood.of(world)
    act = world.actions.re_add if who == "the table" else around.imported
    gone = lost_in(world, DiesInBatch(1, act, is_recorded=recorded, fails_first=fails_first))
    check_told_and_then_done(world, gone)


@dataclass
class DiesOnceRecorded:
    """The process dies right after it wrote what became of its n-th batch."""

    at: int = 1
    is_dead: bool = False

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if self.is_dead:
            raise Died("dead")
        answer = request.send()
        if request.verb == "put_if_absent" and "/outcomes/" in request.key:
            self.at -= 1
            self.is_dead = not self.at
        return answer


@pytest.mark.parametrize("who", ["the table", "another table"])
def test_what_was_lost_is_named_though_the_process_that_found_it_died_before_it_told(world: World, who: str) -> None:
    around = Neighbourhood.of(world)
    gone = lost_in(world, DiesInBatch(1, world.actions.re_add if who == "the table" else around.imported))
    with pytest.raises(Died):
        process_on_its_day(world, DiesOnceRecorded()).resume(world.table)
    world.wait_for_lease()
    check_told_and_then_done(world, gone)


@dataclass
class Refusing:
    """The store never answers when it is to delete the first so many files."""

    files: int
    refused: dict[str, None] = field(default_factory=dict)

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if request.verb == "delete" and (request.key in self.refused or len(self.refused) < self.files):
            self.refused[request.key] = None
            return request.silence()
        return request.send()


@dataclass
class TakenUpAndDies(DiesOnceRecorded):
    """Somebody acts before one file goes, and the process dies once that is recorded."""

    key: str = ""
    action: Callable[[], Any] = lambda: None

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        if request.verb == "delete" and request.key == self.key:
            self.action()
        return super().pass_on(request)


def test_what_a_second_try_took_is_named_though_another_file_was_tried_more_often(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass that is cut tries the first of two files again, and not the second: the second has fewer attempts."""
    monkeypatch.setattr(parts, "PART_ROWS", 1)
    fails = Refusing(2)
    with pytest.raises(DeletesFailed):
        process_on_its_day(world, fails).expire(world.table, grace="0s")
    first, second = fails.refused
    stopped = Refusing(1)
    process = process_on_its_day(world, stopped)
    process.places.interrupted = lambda: bool(stopped.refused)
    with pytest.raises(Interrupted):
        process.resume(world.table)
    assert list(stopped.refused) == [first]
    with pytest.raises(Died):
        process_on_its_day(world, TakenUpAndDies(2, key=second, action=world.actions.re_add)).resume(world.table)
    assert second in lost(world)
    world.wait_for_lease()
    with pytest.raises(TakenUpAgain, match=second):
        process_on_its_day(world).resume(world.table)


@dataclass
class AfterBatch:
    """Somebody acts once the first batch is on record."""

    action: Callable[[], Any]
    done: bool = False

    def pass_on(self, request: PortRequest[Answer]) -> Answer:
        answer = request.send()
        if "/outcomes/" in request.key and request.verb == "put_if_absent" and not self.done:
            self.done = True
            self.action()
        return answer


def test_a_file_that_was_written_anew_is_not_lost(world: World) -> None:
    def write_again() -> None:
        ever = {path for truth in world.writer.ledger.truths.values() for path in truth.data}
        gone = [path for path in ever if not local(path).exists()]
        assert gone
        for path in gone:
            ObjectStores().put(path, b"")
        world.actions.re_add()

    process_on_its_day(world, AfterBatch(write_again)).expire(world.table, grace="0s")
    assert not lost(world)


def test_who_stops_a_purge_is_told_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_ROWS", 1)
    fault = AtDelete(1, world.actions.re_add)
    process = process_on_its_day(world, fault)
    process.places.interrupted = lambda: bool(fault.deleted)
    with pytest.raises(TakenUpAgain):
        process.expire(world.table, grace="0s")
    with pytest.raises(Interrupted):
        process.resume(world.table)


def test_a_stop_within_a_part_leaves_the_rest_to_the_next_purge(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part may hold ten thousand files, which at a slow pace take longer than anyone waits for a stop."""
    monkeypatch.setattr(parts, "PART_ROWS", 10_000)
    monkeypatch.setattr(LocalDeleteMany, "rows", 1)
    fault = AtDelete(2, lambda: None)
    process = process_on_its_day(world, fault)
    process.places.interrupted = lambda: bool(fault.deleted)
    with pytest.raises(Interrupted):
        process.expire(world.table, grace="0s")
    (stopped,) = process.runs(world.table)
    assert stopped.state is RunState.PURGING
    assert stopped.outcomes["deleted"].files == 1
    assert stopped.outcomes["failed"].files > 1
    process.places.interrupted = lambda: False
    (ended,) = process.resume(world.table)
    assert ended.state is RunState.DONE
    assert "failed" not in ended.outcomes
    assert ended.outcomes["deleted"].files == ended.run.plan["victims"]["files"]
    world.check()
