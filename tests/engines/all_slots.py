"""Run as a program: heavy work on a session of five slots. Prints, as JSON, where each piece of it ran.

A deleter waits until as many tasks as there are slots have begun: with fewer at a time it would wait in vain.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import tracemalloc
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from firnline.formats.iceberg.table import IcebergFormat
from firnline.model.files import Root
from firnline.ops.reachability.since_plan import ReachableSincePlan
from firnline.ops.runs.presence import look
from firnline.ports.delete import DeleteOutcome, Doomed, MaySend, always
from firnline.ports.engines import Territory
from firnline.ports.stores import ObjectMeta
from firnline.spark import streaming
from firnline.spark.delete import SparkDeleteMany
from firnline.spark.engine import SparkEngine
from firnline.spark.session import Session, session
from firnline.stores.delete import ObjectDelete
from firnline.stores.objects import ObjectStores
from firnline.stores.throttle import Lanes, Throttle
from firnline.testing.manifests import Item
from firnline.testing.tables import QuickFiles, SmallTable
from harness.lanes import by_lane

SLOTS = 5
PATIENCE_S = 60.0
SOME = by_lane(6_000, 6_000, 12_000)
"""Files of a table."""

FORMAT = IcebergFormat(ObjectStores())


@dataclass(frozen=True)
class Together:
    """Deletes as soon as all slots are at it; notes each process, with the part of the pace that it has."""

    folder: str
    delete_all: ObjectDelete

    def share(self, parts: int) -> Together:
        return Together(self.folder, self.delete_all.share(parts))

    def delete(self, doomed: Sequence[Doomed], may_send: MaySend = always) -> list[DeleteOutcome]:
        part = self.delete_all.throttle.budget.part
        Path(self.folder, f"{os.getpid()}").write_text(json.dumps([len(doomed), part]))
        ends = time.monotonic() + PATIENCE_S
        while len(os.listdir(self.folder)) < SLOTS and time.monotonic() < ends:
            time.sleep(0.01)
        return self.delete_all.delete(doomed, may_send)


def deletes(spark: Session, folder: str) -> dict[str, object]:
    """Returns who deleted a list that is shorter than a part of one, and how many tasks Spark says there were."""
    marks, files = Path(folder, "marks"), Path(folder, "files")
    marks.mkdir()
    files.mkdir()
    doomed = [Doomed(f"file://{files}/{number}") for number in range(1_000)]
    for each in doomed:
        Path(each.key.removeprefix("file://")).touch()
    spark.sparkContext.setJobGroup("deletes", "deletes")
    SparkDeleteMany(spark).delete_many(doomed, Together(str(marks), ObjectDelete(throttle=Throttle(Lanes()))), always)
    said = [json.loads(each.read_text()) for each in marks.iterdir()]
    return {
        "left": len(list(files.iterdir())),
        "keys": sorted(keys for keys, _ in said),
        "pace": sum(part for _, part in said),
        "here": str(os.getpid()) in os.listdir(marks),
        "tasks": most_tasks(spark, "deletes"),
    }


@dataclass(frozen=True)
class Noting:
    """Says what a store says, and notes the process that asked and the part of the pace that it has."""

    folder: str
    store: ObjectStores
    part: float = 1.0

    def share(self, parts: int) -> Noting:
        return Noting(self.folder, self.store, self.part / parts)

    def head(self, key: str) -> ObjectMeta:
        mark = Path(self.folder, f"{os.getpid()}")
        if not mark.exists():
            mark.write_text(json.dumps(self.part))
        return self.store.head(key)


def looks(spark: Session, folder: str) -> dict[str, object]:
    """Returns who looked at the files of a table, and what was wrong with them."""
    marks = Path(folder, "looks")
    marks.mkdir()
    table = large_table(f"{folder}/looked", 2_000)
    engine = SparkEngine(spark)
    with closing(engine.survey(roots_of(table), FORMAT.expand, Territory(None))) as survey:
        spark.sparkContext.setJobGroup("looks", "looks")
        missing = sum(len(each) for each in engine.faults(survey, Noting(str(marks), ObjectStores())))
    parts = [json.loads(each.read_text()) for each in marks.iterdir()]
    return {
        "missing": missing,
        "parts": parts,
        "here": str(os.getpid()) in os.listdir(marks),
        "tasks": most_tasks(spark, "looks"),
    }


def memory(spark: Session, folder: str) -> dict[str, object]:
    """Returns what the driver holds at its peak, in bytes, over a look at all files of a table and a second walk: of a
    table of some size, and of one that is ten times larger. Both are larger than what is brought here at a time.
    """
    streaming._ROWS_PER_JOB = SOME // 4
    held = {}
    for files in (SOME, SOME, 10 * SOME):  # once to warm up
        table = large_table(f"{folder}/{files}-{time.monotonic_ns()}", files)
        roots, asked = roots_of(table), sorted(table.live())[:100]
        gc.collect()
        tracemalloc.start()
        looked_at_and_walked(SparkEngine(spark), roots, asked)
        held[files] = tracemalloc.get_traced_memory()[1] + pa.default_memory_pool().max_memory()
        tracemalloc.stop()
    return {"some": held[SOME], "ten times": held[10 * SOME], "files": SOME}


def looked_at_and_walked(engine: SparkEngine, roots: list[Root], asked: list[str]) -> None:
    """A look at every file, all of which are missing; and a walk after a plan that had seen nothing."""
    with closing(engine.survey(roots, FORMAT.expand, Territory(None))) as survey:
        presence = look(engine, survey, ObjectStores())
    watch = ReachableSincePlan(lambda: engine)
    watch.add(roots, FORMAT.expand)
    assert watch.spared([*asked, f"{asked[0]}.other"]) == set(asked)
    assert len(presence.listed) == 100 <= presence.faults


def large_table(location: str, files: int) -> SmallTable:
    """Returns a table whose data files are named, and not there."""
    table = SmallTable(QuickFiles(), f"file://{location}")
    for start in range(0, files, 10_000):
        count = min(10_000, files - start)
        table.register([Item(f"{table.location}/data/{start + each:07d}.parquet", 5) for each in range(count)])
    return table


def roots_of(table: SmallTable) -> list[Root]:
    """Returns the newest snapshot as what a walk starts from: it has all files."""
    state = FORMAT.load("t", table.publish())
    return [Root(file, True) for owner, file in FORMAT.roots(state) if owner == str(table.head())]


def most_tasks(spark: Session, group: str) -> int:
    """Returns how many tasks the widest stage of a group of jobs had, by Spark's own status."""
    status = spark.sparkContext.statusTracker()
    jobs = [status.getJobInfo(each) for each in status.getJobIdsForGroup(group)]
    stages = [status.getStageInfo(each) for job in jobs if job for each in job.stageIds]
    return max(stage.numTasks for stage in stages if stage)


def main(folder: str) -> None:
    started = SparkSession.builder.appName("all slots").master(f"local[{SLOTS}]")
    for name, value in {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}.items():
        started = started.config(name, value)
    spark = session(started.getOrCreate())
    print(json.dumps({each.__name__: each(spark, folder) for each in (deletes, looks, memory)}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
