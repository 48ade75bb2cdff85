"""What a cluster does with real tables, compared with the local engine. A process of its own: it has one session.

SPARK_MASTER or SPARK_REMOTE say where; the folder is the first argument, names of checks may follow it. Says as JSON
what executors had.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

import firnline
from firnline.local.engine import LocalEngine
from firnline.spark.engine import SparkEngine
from firnline.spark.session import Session, session
from firnline.sql.source import register
from firnline.stores.objects import ObjectStores
from firnline.testing.censuses import CensusWorld
from firnline.testing.engines import a_long_life
from firnline.testing.manifests import AvroLayout
from firnline.testing.surveys import expected, survey
from firnline.testing.tables import QuickFiles, SmallTable

QUICK = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""The tables are tiny: compiling code for a question, or a hundred empty tasks, costs more than its answer."""


def surveys_are_equal(spark: Session, folder: str) -> int:
    """Returns how many victims both engines found."""
    table, expired = a_long_life(SmallTable(QuickFiles(), f"file://{folder}/surveyed", AvroLayout(3)))
    there = survey(SparkEngine(spark), table, expired, ObjectStores(), outside=True)
    assert there == survey(LocalEngine(), table, expired, ObjectStores(), outside=True) == expected(table, expired)
    return len(there.victims)


def censuses_are_equal(spark: Session, folder: str) -> int:
    """Returns how many orphans both engines found."""
    table, _ = a_long_life(SmallTable(QuickFiles(), f"file://{folder}/counted"))
    table.publish()
    world = CensusWorld(table)
    world.every_stray()
    there = world.count(SparkEngine(spark), ObjectStores())
    assert there == world.count(LocalEngine(), ObjectStores())
    return len(there.victims)


def purge_leaves_what_a_local_plan_keeps(spark: Session, folder: str) -> int:
    """Returns how many files executors deleted."""
    table, _ = a_long_life(SmallTable(QuickFiles(), f"file://{folder}/purged"))
    table.publish()
    asked = {"older_than": table.now_ms + 1, "retain_last": 1, "now": table.now_ms + 1, "blast_radius": 1.0}
    planned = firnline.open(engine="local").plan(table.location, **asked)
    doomed = {each["path"] for each in planned.files()}
    files = firnline.open(session=spark).dataframes.files(table.location, **asked)
    assert doomed == {row.path for row in files.filter("verdict = 'victim'").select("path").collect()}
    before = files_of(table)
    ran = firnline.open(engine="spark", session=spark).expire(table.location, grace="0s", **asked)
    assert ran.state == "done", ran
    assert doomed == before - files_of(table)
    return len(doomed)


def sql_sees_every_snapshot(spark: Session, folder: str) -> int:
    """Returns how many snapshots the data source read, planned where Spark plans and read on executors."""
    table, _ = a_long_life(SmallTable(QuickFiles(), f"file://{folder}/asked"))
    table.publish()
    register(spark)
    rows = spark.read.format("firnline").option("table", table.location).option("what", "all_snapshots").load()
    assert {row.snapshot_id for row in rows.select("snapshot_id").collect()} == set(table.changes)
    return len(table.changes)


def files_of(table: SmallTable) -> set[str]:
    return {f"file://{path}" for path in Path(table.location.removeprefix("file://")).rglob("*") if path.is_file()}


def environment(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Says which Python an executor runs, where its firnline lies, and which of its packages came with it."""
    import firnline as here
    from firnline.arrival import PACKED
    from firnline.formats.avro import codecs

    for _ in batches:
        came = Path(here.__path__[0]) / PACKED
        said = {
            "python": sys.executable,
            "firnline": here.__path__[0],
            "came": sorted(each.name for each in came.glob("*") if "." not in each.name) if came.exists() else [],
            "fast": codecs.best() is not codecs.PLAIN,
        }
        yield pa.record_batch([pa.array([json.dumps(said)])], names=["said"])


CHECKS = {
    "survey": surveys_are_equal,
    "census": censuses_are_equal,
    "purge": purge_leaves_what_a_local_plan_keeps,
    "sql": sql_sees_every_snapshot,
}


def main(folder: str, *checks: str) -> None:
    spark = session()
    for name, value in QUICK.items():
        spark.conf.set(name, value)
    facts = {name: CHECKS[name](spark, folder) for name in checks or CHECKS}
    (said,) = spark.range(0, 1, 1, 1).mapInArrow(environment, "said string").collect()
    print(json.dumps({**facts, **json.loads(said.said)}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
