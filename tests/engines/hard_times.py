"""What a cluster answers on which tasks fail, are slow, run twice, and executors die. A process of its own.

The folder is the first argument. Says as JSON what happened.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pyspark.sql import SparkSession

from firnline.formats.iceberg.table import IcebergFormat
from firnline.model.files import File
from firnline.ops.runs.plan import roots
from firnline.ports.delete import Delete, DeleteOutcome, Doomed, Fate, MaySend, always
from firnline.ports.engines import Territory
from firnline.ports.expanding import Expanded, Together, Wrapping
from firnline.spark.delete import SparkDeleteMany
from firnline.spark.engine import SparkEngine
from firnline.spark.session import Session, session
from firnline.stores.delete import ObjectDelete
from firnline.stores.objects import ObjectStores
from firnline.testing.engines import a_long_life
from firnline.testing.manifests import AvroLayout
from firnline.testing.surveys import expected, found
from firnline.testing.tables import QuickFiles, SmallTable

SETTINGS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "500ms",
    "spark.sql.shuffle.partitions": "3",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
}
FORMAT = IcebergFormat(ObjectStores())


def is_first(folder: str, what: str) -> bool:
    """Tells whether nobody was here before with this, on any executor."""
    try:
        os.close(os.open(f"{folder}/{sha256(what.encode()).hexdigest()}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


@dataclass(frozen=True)
class Stumbling(Wrapping):
    """Opens units; a task that meets one for the first time dies of it, or takes its time."""

    folder: str

    def __call__(self, units: Sequence[File], together: Together = map) -> Expanded:
        if is_first(self.folder, units[0].key):
            if len(units) % 2:
                raise ZeroDivisionError("as asked")
            time.sleep(3)
        return self.expand(units, together)


@dataclass(frozen=True)
class DyingAfterwards:
    """Deletes, and the task that did it dies before it can say so."""

    delete_one: Delete
    folder: str

    def delete(self, doomed: Sequence[Doomed], may_send: MaySend = always) -> list[DeleteOutcome]:
        said = self.delete_one.delete(doomed, may_send)
        if is_first(self.folder, doomed[0].key):
            raise ZeroDivisionError("as asked")
        return said

    def share(self, parts: int) -> Delete:
        return self


def executors() -> list[int]:
    """Returns the processes that run executors of this one's cluster."""
    here = {os.getpid()}
    found: list[int] = []
    for _ in range(6):
        for path in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                command = (path / "cmdline").read_text()
            except (OSError, ValueError):
                continue
            if parent in here and int(path.name) not in here:
                here.add(int(path.name))
                if "CoarseGrainedExecutorBackend" in command and "spark-class" not in command:
                    found.append(int(path.name))
    return found


def stumbling(spark: Session, folder: str) -> int:
    """Returns how many units somebody stumbled over; the answer is as if nobody had."""
    table, expired = a_long_life(SmallTable(QuickFiles(), f"file://{folder}/stumbled", AvroLayout(3)))
    state = FORMAT.load("table", table.publish())
    marks = Path(folder, "marks")
    marks.mkdir()
    gone = {str(each) for each in expired}
    survey = SparkEngine(spark).survey(
        roots(FORMAT, state, gone), Stumbling(FORMAT.expand, str(marks)), Territory(None)
    )
    assert found(survey) == expected(table, expired)
    return len(list(marks.iterdir()))


def bereaved(spark: Session, folder: str) -> int:
    """Returns how many executors died between the sums of a survey and its files; the answer is as if none had."""
    table, expired = a_long_life(SmallTable(QuickFiles(), f"file://{folder}/bereaved", AvroLayout(3)))
    state = FORMAT.load("table", table.publish())
    gone = {str(each) for each in expired}
    survey = SparkEngine(spark).survey(roots(FORMAT, state, gone), FORMAT.expand, Territory(None))
    dead = executors()[:1]
    for pid in dead:
        os.kill(pid, signal.SIGKILL)
    assert found(survey) == expected(table, expired)
    return len(dead)


def deleted_twice(spark: Session, folder: str) -> int:
    """Returns how many files were deleted by tasks of which each died after its work, and was run again."""
    marks, files = Path(folder, "deaths"), Path(folder, "doomed")
    marks.mkdir()
    files.mkdir()
    doomed = [Doomed(f"file://{files}/{number:04d}") for number in range(4_100)]
    for each in doomed:
        Path(each.key.removeprefix("file://")).touch()
    said = SparkDeleteMany(spark).delete_many(
        doomed, DyingAfterwards(ObjectDelete(), str(marks)), always, lambda: 600_000
    )
    assert [each.key for each in said] == [each.key for each in doomed]
    assert {each.fate for each in said} == {Fate.MISSING}
    assert not list(files.iterdir())
    return len(list(marks.iterdir()))


def main(folder: str) -> None:
    builder = SparkSession.builder.appName("hard times").master("local-cluster[2,1,1024]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = session(builder.getOrCreate())
    facts = {each.__name__: each(spark, folder) for each in (stumbling, deleted_twice, bereaved)}
    print(json.dumps(facts))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
