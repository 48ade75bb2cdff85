"""Java's Iceberg and firnline take turns on a table by path: python spark_between.py FOLDER JARS.

Says what came of it as JSON, on the last line.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from firnline.lake import open_lake


def session(warehouse: Path, jars: str) -> SparkSession:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.jars": jars,
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(warehouse),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",  # the tables are tiny: compiling takes longer than reading
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[1]").appName("between")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def insert(spark: SparkSession, times: int) -> None:
    for each in range(times):
        spark.sql(f"INSERT INTO lake.ns.t VALUES ({each})").collect()


def expire(table: str) -> list[str]:
    """Expires all but the newest snapshot and returns what the table remembers."""
    lake = open_lake(engine="local")
    now = time.time_ns() // 1_000_000 + 1
    lake.expire(table, older_than=now, retain_last=1, keep={"history": "1d"}, grace="0s", blast_radius=1.0)
    return remembered(table)


def remembered(table: str) -> list[str]:
    return sorted(str(each["snapshot-id"]) for each in open_lake().expired_snapshots(table))


def newest(table: Path) -> dict[str, Any]:
    version = (table / "metadata" / "version-hint.text").read_text().strip()
    found: dict[str, Any] = json.loads((table / "metadata" / f"v{version}.metadata.json").read_bytes())
    return found


def main() -> None:
    warehouse = Path(sys.argv[1])
    spark = session(warehouse, sys.argv[2])
    place = warehouse / "ns" / "t"
    spark.sql("CREATE TABLE lake.ns.t (x BIGINT) USING iceberg")
    insert(spark, 3)
    said: dict[str, Any] = {"first": expire(str(place))}
    spark.sql("REFRESH TABLE lake.ns.t")
    insert(spark, 3)
    said["field_after_java"] = newest(place).get("expired-snapshots-path")
    said["after_java"] = remembered(str(place))
    said["second"] = expire(str(place))
    said["ledger"] = spark.read.parquet(str(place / "_firnline" / "ledger" / "snapshots")).count()
    spark.sql("REFRESH TABLE lake.ns.t")
    said["java_reads"] = spark.table("lake.ns.t").count()
    print(json.dumps(said))


if __name__ == "__main__":
    main()
