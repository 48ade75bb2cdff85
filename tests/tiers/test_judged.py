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
from tests.tiers.grown import KEPT, GrownTable, grow
from tests.tiers.java_spark import JavaSpark
from tests.tiers.readings import Rows, as_of, by_id, by_name, by_time, pyiceberg_rows, spark_rows, without_lineage
from tests.tiers.shores import Shore, on_files

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("tiers-spark")]
COUNT = 500 if os.environ.get("FIRNLINE_FULL") else 12
SAMPLE = 500 if os.environ.get("FIRNLINE_FULL") else 4
Record = Callable[[str, object], None]


@pytest.fixture(params=["files", "s3"])
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
    live, cold = (make_bucket(moto, unique(each)) for each in ("live", "cold"))
    return Shore(name, folder, f"{live}/warehouse", f"{cold}/keep", moto.settings)


@dataclass(frozen=True)
class Told:
    """What a table says of its snapshots: their rows as Spark reads them by id, and as PyIceberg does where it can."""

    document: dict[str, Any]
    spark: dict[str, Rows]
    pyiceberg: dict[int, Rows]

    @property
    def ids(self) -> set[int]:
        return {each["snapshot-id"] for each in self.document["snapshots"]}

    @property
    def names(self) -> dict[str, int]:
        return {name: ref["snapshot-id"] for name, ref in self.document["refs"].items() if name != "main"}

    def moments(self, snapshots: set[int]) -> list[int]:
        """Returns when some snapshots became the current one."""
        log = self.document["snapshot-log"]
        return [each["timestamp-ms"] for each in log if each["snapshot-id"] in snapshots]


def test_what_expired_is_read_from_the_tier(shore: Shore, spark: JavaSpark, record_property: Record) -> None:
    live, cold = shore.live_table(), shore.cold_table()
    table = GrownTable(spark, live)
    table.create()
    grow(table, COUNT)
    before, now = _told(shore, spark, live), spark_rows(spark, live, {"now": ""}, lineage=True)
    moments = before.moments(before.ids)
    found = as_of(spark, live, moments)

    assert shore.expire("local")["state"] == "done"

    spark.refresh(live)
    after = _told(shore, spark, cold, record_property)
    gone = before.ids - {each.snapshotId() for each in table.java.snapshots()}
    assert len(gone) >= COUNT
    assert after.pyiceberg
    assert after.spark == {str(each): before.spark[str(each)] for each in gone}
    assert after.pyiceberg == {each: rows for each, rows in before.pyiceberg.items() if each in gone}
    assert after.names == {name: each for name, each in before.names.items() if name != KEPT}
    assert len(after.names) >= 3
    moments = before.moments(gone)
    assert as_of(spark, cold, moments) == {each: found[each] for each in moments}
    with pytest.raises(AssertionError, match=f"Cannot find snapshot with ID {before.names[KEPT]}"):
        spark_rows(spark, cold, by_time(before.moments({before.names[KEPT]})), lineage=False)
    some = moments[:: 1 + len(moments) // SAMPLE]
    assert spark_rows(spark, cold, by_time(some), lineage=True) == {str(t): after.spark[str(found[t])] for t in some}
    named = {name: without_lineage(after.spark[str(each)]) for name, each in after.names.items()}
    read = spark_rows(spark, cold, by_name(after.names), lineage=False)
    assert {name: without_lineage(rows) for name, rows in read.items()} == named
    assert spark_rows(spark, live, {"now": ""}, lineage=True) == now
    for each in (live, cold):
        assert shore.firnline("check", each)["sound"], each


def _told(shore: Shore, spark: JavaSpark, table: str, record: Record | None = None) -> Told:
    """Returns what the table says, where both engines agree."""
    document = spark.jvm.document(spark.table(table).operations().current())
    rows = spark_rows(spark, table, by_id(each["snapshot-id"] for each in document["snapshots"]), lineage=True)
    read, cannot = pyiceberg_rows(shore.pyiceberg(table))
    assert read == {each: without_lineage(rows[str(each)]) for each in read}
    if record is not None:
        counts = {"read by Spark": len(rows), "read by PyIceberg": len(read)}
        record("count: expired snapshots in a tier, each as it was in live", {**counts, **cannot})
    return Told(document, rows, read)
