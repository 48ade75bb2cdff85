"""On Spark nothing heavy is done by the driver: in this process neither a file is looked at nor a unit opened.

Here both are forbidden; executors are other processes, and know nothing of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from firnline.app.engines import Engines
from firnline.errors import RefusedForSafety, UnreadableMetadata
from firnline.formats.iceberg.expand import IcebergExpand
from firnline.journal import parts
from firnline.journal.lease import LeaseTimes
from firnline.model.files import File
from firnline.ops.runs.status import RunStatus
from firnline.ports.expanding import Expanded, Together
from firnline.ports.stores import ObjectMeta
from firnline.stores.objects import ObjectStores
from harness.disks import local
from harness.processes import Process
from harness.world import World

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


class Heavy(AssertionError):
    """The driver did what executors should."""


@pytest.fixture
def world(quick_folder: Path) -> World:
    """A table with a few snapshots, of which the older ones expire."""
    return World.make(quick_folder / "world")


@pytest.fixture
def process(world: World, spark_session: SparkSession) -> Process:
    found = world.process()
    found.places.engines = Engines("spark", spark_session)
    found.places.lease_times = LeaseTimes(skew_ms=0)  # Spark takes its time where others use the processor
    return found


@pytest.fixture
def at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the driver neither open units nor look at data files."""
    head = ObjectStores.head

    def looked(self: ObjectStores, key: str) -> ObjectMeta:
        if key.endswith(".parquet") and "/data/" in key:
            raise Heavy(f"the driver looked at {key}")
        return head(self, key)

    def opened(self: IcebergExpand, units: Sequence[File], together: Together = map) -> Expanded:
        raise Heavy(f"the driver opened {[each.key for each in units]}")

    monkeypatch.setattr(ObjectStores, "head", looked)
    monkeypatch.setattr(IcebergExpand, "__call__", opened)


def data_files(world: World) -> set[str]:
    """Returns the data files that are there of all that any snapshot ever had."""
    ever = {path for truth in world.writer.ledger.truths.values() for path in truth.data}
    return {path for path in ever if local(path).exists()}


def committed(process: Process, world: World) -> str:
    """Returns a run that waits for its purge."""
    ended = process.expire(world.table, grace="1h")
    assert isinstance(ended, RunStatus)
    return ended.id


@pytest.mark.usefixtures("at_rest")
def test_check_looks_at_files_on_executors(process: Process, world: World) -> None:
    checked = process.check(world.table)
    assert checked.sound
    gone = min(path for path in data_files(world) if path in {item.path for item in world.writer.live()})
    local(gone).unlink()
    (fault,) = process.check(world.table).presence.listed
    assert (fault.path, fault.problem) == (gone, "missing")


@pytest.mark.full
@pytest.mark.usefixtures("at_rest")
def test_undo_looks_at_files_on_executors(process: Process, world: World) -> None:
    run = committed(process, world)
    went = min(data_files(world) - {item.path for item in world.writer.live()})
    held = local(went).read_bytes()
    local(went).unlink()
    with pytest.raises(RefusedForSafety, match="cannot be undone"):
        process.undo(run)
    local(went).write_bytes(held)
    assert process.undo(run).state == "undone"


def taken_up_meanwhile(process: Process, world: World) -> tuple[str, set[str]]:
    """Returns a run that waits for its purge, and files on its list that a commit named again since."""
    run = committed(process, world)
    before = {item.path for item in world.writer.live()}
    assert world.actions.re_add()
    world.clock.advance(2 * 3_600_000)
    again = {item.path for item in world.writer.live()} - before
    assert again
    return run, again


@pytest.mark.usefixtures("at_rest")
def test_the_second_walk_of_a_purge_runs_on_executors(
    process: Process, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a commit took up again is spared by every batch, as a walk on executors found it."""
    monkeypatch.setattr(parts, "PART_ROWS", 4)
    run, again = taken_up_meanwhile(process, world)
    done = process.purge(run)
    assert done.state == "done"
    assert 0 < done.outcomes["spared"].files <= len(again), "some of them a tag had kept"
    assert done.outcomes["deleted"].files > 0
    assert again <= data_files(world)
    assert process.check(world.table).sound


@pytest.mark.usefixtures("at_rest")
def test_what_executors_cannot_read_stops_the_purge(process: Process, world: World) -> None:
    run, _ = taken_up_meanwhile(process, world)
    there = data_files(world)
    newest = max(world.folder.rglob("*.avro"), key=lambda each: each.stat().st_mtime_ns)
    newest.unlink()
    with pytest.raises(UnreadableMetadata, match=newest.name):
        process.purge(run)
    assert data_files(world) == there
