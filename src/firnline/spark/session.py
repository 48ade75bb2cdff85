"""Getting a Spark session: the caller's own where there is one, else a quiet local one."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

Session = SparkSession

_QUIET = {
    "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 2)),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.log.level": "ERROR",
}


def session(remote: str | None = None) -> SparkSession:
    """Returns the active session, a Spark Connect session at `remote`, or a new local one.

    Executors must run this very interpreter: with another Python they fail, and say so only in their logs.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("firnline")
    if remote:
        return builder.remote(remote).getOrCreate()
    for name, value in {**_QUIET, **_packages()}.items():
        builder = builder.config(name, value)
    if "SPARK_MASTER" not in os.environ and not _configured():
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.master("local[*]").config("spark.driver.bindAddress", "127.0.0.1")
    return builder.getOrCreate()


def _packages() -> dict[str, str]:
    """Returns the jars that a new session gets, such as Iceberg's own runtime; Spark fetches them by name."""
    packages = os.environ.get("FIRNLINE_SPARK_PACKAGES")
    return {"spark.jars.packages": packages} if packages else {}


def _configured() -> bool:
    """Tells whether the environment already says where Spark runs."""
    return any(name in os.environ for name in ("SPARK_CONF_DIR", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS"))
