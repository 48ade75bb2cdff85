"""Getting a Spark session: the caller's own where there is one, else a quiet one of ours."""

from __future__ import annotations

import os
import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from firnline.errors import UsageError
from firnline.spark.reaching import reached, refuse_unreachable
from firnline.spark.shipping import equipped
from firnline.spark.troubles import said_by

Session = SparkSession

_QUIET = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.log.level": "ERROR",
}
_LOCAL = {
    "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 2)),
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""A cluster has more cores than this machine, a page that shows its jobs, and an address that executors reach."""

_SAID = ("SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT")
"""Where Spark runs is said by its own settings, or by `spark-submit`, which started this process."""

_START = "it needs Java 17 or newer (JAVA_HOME), or a cluster that answers; `--engine local` needs neither"


def session(given: SparkSession | None = None) -> SparkSession:
    """Returns the given session, the active one, or a new one where the environment says, with executors equipped.
    Raises UsageError where there can be none.

    `SPARK_REMOTE` names a Spark Connect server, `SPARK_MASTER` a cluster; Spark's own ways are left to Spark. Tasks
    beside this process must run this very interpreter: with another Python they fail, and say so only in their logs.
    """
    try:
        return equipped(given or SparkSession.getActiveSession() or _started())
    except PySparkException as problem:
        raise UsageError(f"Spark cannot be started: {said_by(problem)}", _START) from problem


def _started() -> SparkSession:
    builder = SparkSession.builder.appName("firnline")
    remote, master = os.environ.get("SPARK_REMOTE"), os.environ.get("SPARK_MASTER")
    os.environ.setdefault("PYSPARK_PYTHON", _python(None if remote else master))
    if remote:
        refuse_unreachable(remote)
        return reached(builder.remote(remote).getOrCreate())
    settings = {**_QUIET, **_packages()}
    if master:
        builder = builder.master(master)
    elif not _configured():
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder, settings = builder.master("local[*]"), {**settings, **_LOCAL}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _python(master: str | None) -> str:
    """Returns the Python of the tasks: this very one if they run beside this process, else one of its version."""
    elsewhere = master is not None and master.partition("[")[0] != "local"
    return "python{}.{}".format(*sys.version_info) if elsewhere else sys.executable


def _packages() -> dict[str, str]:
    """Returns the jars that a new session gets, such as Iceberg's own runtime; Spark fetches them by name."""
    packages = os.environ.get("FIRNLINE_SPARK_PACKAGES")
    return {"spark.jars.packages": packages} if packages else {}


def _configured() -> bool:
    """Tells whether the environment already says where Spark runs."""
    return any(name in os.environ for name in _SAID)
