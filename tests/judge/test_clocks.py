"""Iceberg's Java commits on after firnline, whatever the clock of firnline's machine says.

Java refuses a commit whose time lies more than a minute before that of the metadata that it is built on, so one commit
from the future keeps every other writer out of the table until that time has come.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from py4j.protocol import Py4JError

from firnline.app.places import now_ms
from firnline.errors import RefusedForSafety
from firnline.model.times import HOUR_MS, MINUTE_MS
from harness.disks import local
from harness.world import World

from .jvm import Jvm

pytestmark = pytest.mark.xdist_group("judge-0")  # shares that group's JVM

_KEPT = "keep:\n  within: 400d\n"


def _expire(world: World) -> None:
    assert world.process().expire(world.table, grace="1h").state == "committed"


def _undo(world: World) -> None:
    run = world.process().expire(world.table, grace="1h").id
    assert world.process().undo(run).state == "undone"


def _drop(world: World) -> None:
    world.process().tag_add(world.table, "gone")
    world.process().drop(world.table, ["gone"], grace="1h")


def _remove_tag(world: World) -> None:
    world.process().tag_add(world.table, "gone")
    world.process().tag_remove(world.table, "gone")


def _release(world: World) -> None:
    world.process().hold_add(world.table, "case")
    world.process().hold_release(world.table, "case")


def _adopt(world: World) -> None:
    world.policy = _KEPT
    assert world.process().adopt(world.table)


COMMANDS: dict[str, Callable[[World], None]] = {
    "expire": _expire,
    "undo": _undo,
    "drop": _drop,
    "tag add": lambda world: world.process().tag_add(world.table, "kept"),
    "tag remove": _remove_tag,
    "hold add": lambda world: world.process().hold_add(world.table, "case", world.snapshots["s3"]),
    "hold release": _release,
    "adopt": _adopt,
}
SKEWS = {"ahead": 4 * MINUTE_MS, "behind": -4 * MINUTE_MS}


@pytest.fixture
def world(quick_folder: Path) -> World:
    return World.make(quick_folder)


def commit_by_java(judge: Jvm, place: str, scratch: Path) -> None:
    """Has Iceberg's Java commit on top of some metadata, in a folder of its own. Raises what Java says against it."""
    (scratch / "metadata").mkdir(parents=True)
    copyfile(local(place), scratch / "metadata" / "v1.metadata.json")
    (scratch / "metadata" / "version-hint.text").write_text("1")
    tables = judge.iceberg("hadoop.HadoopTables")(judge.java("org.apache.hadoop.conf.Configuration")())
    tables.load(str(scratch)).updateProperties().set("written", "after us").commit()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("command", COMMANDS)
def test_java_commits_on_after_a_command_on_a_machine_whose_clock_is_off(
    judge: Jvm, world: World, command: str, skew: str, tmp_path: Path
) -> None:
    before, began = world.writer.document(), world.writer.place()
    world.clock.skew_ms = SKEWS[skew]
    COMMANDS[command](world)
    assert world.writer.place() != began
    after = world.writer.document()
    times = [after["last-updated-ms"], *(each["timestamp-ms"] for each in after["metadata-log"])]
    assert max(times) <= now_ms()
    assert after["last-updated-ms"] >= before["last-updated-ms"]
    commit_by_java(judge, world.writer.place(), tmp_path / "java")


def test_java_itself_refuses_to_follow_metadata_from_the_future(judge: Jvm, world: World, tmp_path: Path) -> None:
    """What all this is for: without it the tests above would show nothing."""
    _from_the_future(world, 4 * MINUTE_MS)
    with pytest.raises(Py4JError) as refused:
        commit_by_java(judge, world.writer.place(), tmp_path / "java")
    # Where Spark ran in this process before, it asks every JVM for words that only its own has.
    told = f"{refused.value} {refused.value.__context__}"
    assert "before the latest metadata log entry timestamp" in told


def test_what_another_clock_wrote_ahead_is_neither_undercut_nor_led_further(judge: Jvm, world: World) -> None:
    """Java cannot even read metadata that goes back by more than a minute."""
    ahead = _from_the_future(world, 4 * MINUTE_MS)
    world.process().tag_add(world.table, "kept")
    assert world.writer.document()["last-updated-ms"] == ahead
    read = judge.iceberg("Files").localInput(str(local(world.writer.place())))
    assert judge.iceberg("TableMetadataParser").read(read).lastUpdatedMillis() == ahead


@pytest.mark.sampled(5)
@pytest.mark.parametrize("skew", [10 * MINUTE_MS, -10 * MINUTE_MS, 5 * HOUR_MS])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_clock_that_is_far_off_changes_nothing(world: World, command: str, skew: int) -> None:
    world.clock.skew_ms = skew
    began = world.writer.place()
    with pytest.raises(RefusedForSafety, match="clock and the store's differ by"):
        COMMANDS[command](world)
    assert world.writer.place() == began


def _from_the_future(world: World, by_ms: int) -> int:
    ahead = now_ms() + by_ms

    def edit(document: dict[str, Any]) -> None:
        document["last-updated-ms"] = ahead

    world.writer.change(edit)
    return ahead
