"""An archive of the classes that a Spark session loads: a JVM that maps it starts in half the time.

`python -m harness.servers.spark_classes` makes it, where it is not there. It lies in the virtual environment: it holds
for one Java and for the jars of one pyspark. A JVM that it does not fit starts without it, and says nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from firnline.spark.jvm.classes import BRIEF, BUFFERS, OPTIONS, fit, mapped, written
from harness.servers.cache import alone


def jvm_options() -> str:
    """Returns how the JVMs of Spark sessions are started: with the archive, where there is one."""
    archive = _archive()
    options = f"{BUFFERS} {BRIEF}"
    return f"{options} {mapped(archive)}" if archive and archive.exists() else options


def _archive() -> Path | None:
    """Returns where the archive of this Java and this pyspark lies or would lie; None without one of the two."""
    name = fit()
    return Path(sys.prefix, name) if name else None


def make() -> None:
    """Makes the archive. A Java that makes none leaves the tests slower, and as right as they were."""
    archive = _archive()
    if archive is None:
        return
    with alone(archive.with_suffix(".lock")):
        if not archive.exists():
            draft = archive.with_suffix(".part")
            draft.unlink(missing_ok=True)
            _fill(draft)
            if draft.exists():
                draft.replace(archive)


def _fill(draft: Path) -> None:
    """Works a little with Spark, in a JVM that archives the classes it has loaded when it ends."""
    os.environ[OPTIONS] = f"{BUFFERS} {BRIEF} {written(draft)}"
    from firnline.spark.session import session

    spark: Any = session()
    gateway = spark.sparkContext._gateway
    with TemporaryDirectory() as folder:
        _plan(spark, folder)
        _query(spark, folder)
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # the JVM ends by that
    gateway.proc.wait()


def _plan(spark: Any, folder: str) -> None:
    import firnline
    from firnline.testing.engines import a_long_life
    from firnline.testing.tables import QuickFiles, SmallTable

    table, _ = a_long_life(SmallTable(QuickFiles(), f"file://{folder}/t"))
    table.publish()
    firnline.open(engine="spark", session=spark).plan(table.location, now=table.now_ms)


def _query(spark: Any, folder: str) -> None:
    spark.range(9).selectExpr("id % 2 AS k", "id").groupBy("k").count().write.parquet(f"{folder}/rows")
    spark.read.parquet(f"{folder}/rows").createOrReplaceTempView("v")
    spark.sql("SELECT a.k, max(b.count) FROM v a JOIN v b ON a.k = b.k GROUP BY a.k ORDER BY a.k").collect()


if __name__ == "__main__":
    make()
