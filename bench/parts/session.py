"""A Spark session with the same settings for every tool that is measured."""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
CORES = 2


def started(warehouse: Path, memory: str, *, plain: bool = False) -> SparkSession:
    """A session with Iceberg's runtime and a Hadoop catalog over the warehouse; a plain one has neither, as those that
    firnline starts itself: what comes with the runtime costs each plan of a session some tenths of a second.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": str(4 * CORES),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    }
    theirs = {} if plain else _iceberg(warehouse)
    return SparkSession.builder.master(f"local[{CORES}]").config(map={**settings, **theirs}).getOrCreate()


def _iceberg(warehouse: Path) -> dict[str, str]:
    return {
        "spark.jars.packages": ICEBERG,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(warehouse),
        "spark.sql.catalog.lake.cache-enabled": "false",
    }


def stages(spark: SparkSession, first: int) -> list[dict[str, Any]]:
    """What each Spark stage from a number on took that ran, by the clock: where the time goes."""
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    found: list[dict[str, Any]] = []
    for number in count(first):
        try:
            stage = store.lastStageAttempt(number)
        except Py4JJavaError:  # there is no stage of this number yet
            return found
        times = [
            each.get().getTime() / 1000 for each in (stage.submissionTime(), stage.completionTime()) if each.isDefined()
        ]
        if len(times) == 2:  # others were not needed: what they would compute was there
            found.append({"stage": number, "seconds": round(times[1] - times[0], 2), "tasks": stage.numTasks()})
    return found
