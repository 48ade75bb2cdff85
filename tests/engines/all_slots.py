"""Run as a program: heavy work on a session of five slots. Prints, as JSON, where each piece of it ran.

A deleter waits until as many tasks as there are slots have begun: with fewer at a time it would wait in vain.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from firnline.ports.delete import DeleteOutcome, Doomed, MaySend, always
from firnline.spark.delete import SparkDeleteMany
from firnline.spark.session import Session, session
from firnline.stores.delete import ObjectDelete
from firnline.stores.throttle import Lanes, Throttle

SLOTS = 5
PATIENCE_S = 60.0


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
    print(json.dumps({each.__name__: each(spark, folder) for each in (deletes,)}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
