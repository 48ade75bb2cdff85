"""Every expired snapshot, read through the cold table by Spark with Iceberg 1.12.0 and by PyIceberg, gives the rows
that live gave before: on local files, and on an S3 server with a bucket for each.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.servers.fixtures import GetServer, unique
from harness.servers.s3 import make_bucket
from tests.tiers.grown import KEPT, GrownTable, grow, grow_first
from tests.tiers.java_spark import JavaSpark
from tests.tiers.readings import Rows, as_of, by_id, by_name, by_time, pyiceberg_rows, spark_rows, without_lineage
from tests.tiers.shores import Shore, on_files

FULL = bool(os.environ.get("FIRNLINE_FULL"))
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("tiers-spark"), pytest.mark.timeout(3_600 if FULL else 600)]
COUNT = 500 if FULL else 12
SAMPLE = 25 if FULL else 4
Record = Callable[[str, object], None]

GROUNDS = ["files", "s3"] if FULL else ["s3"]


@pytest.fixture(params=GROUNDS)
def shore(
    request: pytest.FixtureRequest, tmp_path: Path, server: GetServer, spark: JavaSpark, monkeypatch: pytest.MonkeyPatch
) -> Shore:
    name = unique(request.param).replace("-", "_")
    made = on_files(name, tmp_path) if request.param == "files" else _on_buckets(name, tmp_path, server)
    made.configure(monkeypatch)
    made.add_to(spark)
    return made


def _on_buckets(name: str, folder: Path, server: GetServer) -> Shore:
    moto = server("moto")
    live, cold, deep = (make_bucket(moto, unique(each)) for each in ("live", "cold", "deep"))
    return Shore(name, folder, f"{live}/warehouse", f"{cold}/keep", moto.settings, f"{deep}/for-ever")


@dataclass(frozen=True)
class Told:
    """What a table says of its snapshots: their rows as Spark reads them by id, and as PyIceberg does where it can."""

    document: dict[str, Any]
    rows: dict[int, Rows]
    pyiceberg: dict[int, Rows]

    @property
    def ids(self) -> set[int]:
        return {each["snapshot-id"] for each in self.document["snapshots"]}

    @property
    def names(self) -> dict[str, int]:
        return {name: ref["snapshot-id"] for name, ref in self.document["refs"].items() if name != "main"}

    @property
    def moments(self) -> dict[int, int]:
        """The snapshots that were current, by the instants since when."""
        return {each["timestamp-ms"]: each["snapshot-id"] for each in self.document["snapshot-log"]}


@pytest.mark.full
def test_what_expired_is_read_from_the_tier(shore: Shore, spark: JavaSpark, record_property: Record) -> None:
    """Two runs, of a table that becomes one of format version 3 in between."""
    live, cold = shore.live_table(), shore.cold_table()
    table = GrownTable(spark, live)
    table.create()
    grow_first(table)
    first = _told(shore, spark, live, lineage=False)
    _expire(shore, spark)
    grow(table, COUNT)
    second, now = _told(shore, spark, live), spark_rows(spark, live, {"now": ""}, lineage=True)
    _expire(shore, spark)

    after = _told(shore, spark, cold, record_property)
    ends = {each.snapshotId() for each in table.java.snapshots()}
    gone = (first.ids | second.ids) - ends
    assert len(gone) >= COUNT
    assert {each: without_lineage(rows) for each, rows in after.rows.items()} == {
        each: without_lineage({**first.rows, **second.rows}[each]) for each in gone
    }
    assert {each: after.rows[each] for each in second.ids - ends} == {
        each: second.rows[each] for each in second.ids - ends
    }
    assert after.pyiceberg == {
        each: rows for each, rows in (first.pyiceberg | second.pyiceberg).items() if each in gone
    }
    assert after.names == {name: each for name, each in (first.names | second.names).items() if name != KEPT}
    assert len(after.names) >= 3
    _assert_times(spark, cold, first.moments | second.moments, after)
    with pytest.raises(AssertionError, match=f"Cannot find snapshot with ID {second.names[KEPT]}"):
        spark_rows(spark, cold, by_time(at for at, each in second.moments.items() if each == second.names[KEPT]))
    assert spark_rows(spark, live, {"now": ""}, lineage=True) == now
    for path in ("all_files", "file_path"), ("all_manifests", "path"):
        assert all(row["path"].startswith(shore.cold) for row in _paths(spark, cold, *path))
    for each in (live, cold):
        assert shore.firnline("check", each)["sound"], each
    _assert_deep(shore, spark, after)


def _assert_deep(shore: Shore, spark: JavaSpark, before: Told) -> None:
    """Asserts that what the cold table hands to the deep tier comes back to it as it was, with its lineage."""
    cold = shore.cold_table()
    assert shore.expire_cold()["state"] == "done"
    spark.refresh(cold)
    left = {each.snapshotId() for each in spark.table(cold).snapshots()}
    gone = sorted(before.ids - left)
    assert gone
    for each in gone[:: 1 + len(gone) // SAMPLE]:
        shore.wake(each)
        spark.refresh(cold)
        assert spark_rows(spark, cold, by_id([each]), lineage=True) == {str(each): before.rows[each]}, each
    assert shore.firnline("check", cold)["sound"]


def _paths(spark: JavaSpark, table: str, of: str, column: str) -> list[dict[str, Any]]:
    found = spark.sql(f"SELECT DISTINCT {column} AS path FROM {table}.{of}")
    assert found
    return found


def _expire(shore: Shore, spark: JavaSpark) -> None:
    assert shore.expire("local")["state"] == "done"
    spark.refresh(shore.live_table())


def _assert_times(spark: JavaSpark, cold: str, moments: dict[int, int], after: Told) -> None:
    """Asserts that the tier finds by every instant and name what live found: all of them by Java, some by Spark."""
    times = [at for at, each in moments.items() if each in after.ids]
    assert as_of(spark, cold, times) == {at: moments[at] for at in times}
    some = times[:: 1 + len(times) // SAMPLE]
    asked = {**by_time(some), **by_name(after.names)}
    wanted = {str(at): moments[at] for at in some} | after.names
    assert {name: without_lineage(rows) for name, rows in spark_rows(spark, cold, asked).items()} == {
        name: without_lineage(after.rows[each]) for name, each in wanted.items()
    }


def _told(shore: Shore, spark: JavaSpark, table: str, record: Record | None = None, *, lineage: bool = True) -> Told:
    """Returns what the table says, where both engines agree."""
    document = spark.jvm.document(spark.table(table).operations().current())
    ids = [each["snapshot-id"] for each in document["snapshots"]]
    rows = {int(each): rows for each, rows in spark_rows(spark, table, by_id(ids), lineage=lineage).items()}
    read, cannot = pyiceberg_rows(shore.pyiceberg(table))
    assert read
    assert read == {each: without_lineage(rows[each]) for each in read}
    if record is not None:
        counts = {"read by Spark": len(rows), "read by PyIceberg": len(read)}
        record("count: expired snapshots in a tier, each as it was in live", {**counts, **cannot})
    return Told(document, rows, read)
