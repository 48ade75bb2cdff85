"""Streams that stopped go on after an expiry: real queries of Spark with Iceberg's own source are the judge."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from firnline.app.places import now_ms
from tests.neighbours.lakes import RealLake
from tests.readers.streams import AVAILABLE_NOW, CONTINUED, Streams
from tests.tiers.java_spark import JavaSpark

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("tiers-spark")]

LAST: dict[str, Any] = {"retain_last": 1, "grace": "0s", "blast_radius": 1.0}


@pytest.fixture
def streams(spark: JavaSpark, lake: RealLake) -> Streams:
    return Streams.over(spark, lake)


def expire(lake: RealLake, table: str = "a", **options: Any) -> None:
    """Expires all but the last snapshot, and removes its files."""
    lake.firnline().expire(f"lake.db.{table}", older_than=now_ms(), **{**LAST, **options})


def appended(lake: RealLake, *numbers: int, table: str = "a") -> None:
    for number in numbers:
        lake.append(table, number)


def test_a_stream_that_stopped_goes_on_where_its_checkpoint_is_named(streams: Streams, lake: RealLake) -> None:
    lake.create("a")
    appended(lake, 1, 2)
    streams.run("job", "a")
    appended(lake, 3)
    streams.run("job", "a")
    appended(lake, 4, 5, 6)
    lake.policy = f"readers: [{lake.folder}/checkpoints/*]"
    expire(lake)
    assert len(lake.table("a").snapshots()) == 4, "what it stood at, and all that it has not read"
    streams.run("job", "a")
    assert streams.rows("job") == [1, 2, 3, 4, 5, 6]
    expire(lake)
    assert len(lake.table("a").snapshots()) == 1, "it has read all"
    appended(lake, 7)
    streams.run("job", "a")
    assert streams.rows("job") == [1, 2, 3, 4, 5, 6, 7]


def test_without_the_setting_the_stream_fails(streams: Streams, lake: RealLake) -> None:
    lake.create("a")
    appended(lake, 1)
    streams.run("job", "a")
    appended(lake, 2, 3)
    expire(lake)
    with pytest.raises(AssertionError, match="the snapshot was expired or removed"):
        streams.run("job", "a")


def test_a_batch_without_its_commit_is_read_again_from_the_one_before(streams: Streams, lake: RealLake) -> None:
    lake.create("a")
    appended(lake, 1)
    streams.run("job", "a")
    appended(lake, 2, 3)
    streams.run("job", "a")
    for each in (streams.checkpoint("job") / "commits").glob("*1*"):
        each.unlink()  # the query died after it had planned its batch
    appended(lake, 4)
    lake.policy = f"readers: [{streams.checkpoint('job')}]"
    expire(lake)
    assert len(lake.table("a").snapshots()) == 4
    streams.run("job", "a")
    assert set(streams.rows("job")) == {1, 2, 3, 4}


@pytest.mark.parametrize("trigger", [CONTINUED, AVAILABLE_NOW])
def test_a_stream_that_began_on_an_empty_table_loses_no_row(streams: Streams, lake: RealLake, trigger: str) -> None:
    """Iceberg's source begins at the oldest snapshot that is left, and says nothing of those before it."""
    lake.create("a")
    streams.run("job", "a", trigger=trigger)
    appended(lake, 1, 2, 3)
    lake.policy = f"readers: [{lake.folder}/checkpoints/*]"
    plan = lake.firnline().plan("lake.db.a", older_than=now_ms(), retain_last=1).plan
    assert any("has read nothing yet" in note for note in plan.notes)
    expire(lake)
    streams.run("job", "a", trigger=trigger)
    assert streams.rows("job") == [1, 2, 3]


def test_a_query_of_what_is_available_needs_its_first_snapshot(streams: Streams, lake: RealLake) -> None:
    """Iceberg's source walks from its first offset whenever such a query starts, although it has read all of that."""
    lake.create("a")
    appended(lake, 1, 2)
    streams.run("job", "a", trigger=AVAILABLE_NOW)
    streams.run("copied", "a", trigger=AVAILABLE_NOW)
    appended(lake, 3)
    lake.policy = f"readers: [{streams.checkpoint('job')}]"
    plan = lake.firnline().plan("lake.db.a", older_than=now_ms(), retain_last=1).plan
    assert any("readers-from: start" in note for note in plan.notes)
    lake.policy += "\nreaders-from: start"
    expire(lake)
    streams.run("job", "a", trigger=AVAILABLE_NOW)
    assert streams.rows("job") == [1, 2, 3]
    lake.policy = f"readers: [{streams.checkpoint('copied')}]"
    expire(lake)
    with pytest.raises(AssertionError, match="the snapshot was expired or removed"):
        streams.run("copied", "a", trigger=AVAILABLE_NOW)
    start = streams.checkpoint("copied") / "sources" / "0" / "offsets" / "0"
    (start.parent / ".0.crc").unlink(missing_ok=True)
    start.write_text(json.dumps({"version": 1, "snapshot_id": -1, "position": -1, "scan_all_files": False}))
    streams.run("copied", "a", trigger=AVAILABLE_NOW)
    assert streams.rows("copied") == [1, 2, 3], "the page says how such a query is brought back"


def test_two_tables_in_one_query_both_keep_what_it_has_not_read(streams: Streams, lake: RealLake) -> None:
    for table in "ab":
        lake.create(table)
    appended(lake, 1)
    appended(lake, 10, table="b")
    streams.run("job", "a", "b")
    appended(lake, 2, 3)
    appended(lake, 20, 30, table="b")
    lake.policy = f"readers: [{lake.folder}/checkpoints/*]"
    expire(lake)
    expire(lake, "b")
    streams.run("job", "a", "b")
    assert streams.rows("job") == [1, 2, 3, 10, 20, 30]


def test_a_checkpoint_that_moved_is_found_by_its_pattern(streams: Streams, lake: RealLake) -> None:
    lake.create("a")
    appended(lake, 1)
    streams.run("job", "a")
    shutil.move(streams.checkpoint("job"), streams.checkpoint("renamed"))
    shutil.move(lake.folder / "read" / "job", lake.folder / "read" / "renamed")
    appended(lake, 2, 3)
    lake.policy = f"readers: [{lake.folder}/checkpoints/*]"
    expire(lake)
    streams.run("renamed", "a")
    assert streams.rows("renamed") == [1, 2, 3]
