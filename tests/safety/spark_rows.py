"""Reads tables with Spark and Iceberg in a process of its own: python spark_rows.py ASKED.json ANSWER.json JARS.

ASKED is {name: {"metadata": path of the metadata file, "snapshots": [id, …]}}, ANSWER is {name: {id: [row, …]}}.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from functools import reduce
from pathlib import Path
from shutil import copyfile
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit


def session(jars: str) -> SparkSession:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",  # the tables are tiny: compiling takes longer than reading
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[1]").appName("rows")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def rows_of(spark: SparkSession, metadata: Path, snapshots: list[int], folder: Path) -> dict[str, list[int]]:
    """Returns the rows of each snapshot, from a table by path whose only metadata file is a copy of this one."""
    (folder / "metadata").mkdir(parents=True)
    copyfile(metadata, folder / "metadata" / "v1.metadata.json")
    (folder / "metadata" / "version-hint.text").write_text("1")

    def at(snapshot: int) -> DataFrame:
        frame = spark.read.format("iceberg").option("versionAsOf", snapshot).load(str(folder))
        return frame.select("x", lit(str(snapshot)).alias("snapshot"))

    found: dict[str, list[int]] = {str(snapshot): [] for snapshot in snapshots}
    for row in reduce(DataFrame.unionAll, map(at, snapshots)).collect():
        found[row["snapshot"]].append(row["x"])
    return {snapshot: sorted(rows) for snapshot, rows in found.items()}


def answer(asked: dict[str, Any], jars: str) -> dict[str, dict[str, list[int]]]:
    spark = session(jars)
    with tempfile.TemporaryDirectory() as scratch:
        return {
            name: rows_of(spark, Path(table["metadata"]), table["snapshots"], Path(scratch) / str(number))
            for number, (name, table) in enumerate(asked.items())
        }


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(answer(json.loads(Path(sys.argv[1]).read_bytes()), sys.argv[3])))
