"""Over how many tasks a walk is spread, and how many units each opens at a time."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

TASKS, THREADS = "spark.firnline.walk.tasks", "spark.firnline.walk.threads"
"""Settings of a session: the most tasks of a walk, and how many units a task opens at a time."""

_THREADS = 4
_FEWEST_UNITS, _MOST_UNITS = 64, 1_024
"""Of a task. A task costs about 0.1 s before it opens anything; one that opens many leaves others waiting for it."""

_ROUNDS = 2
"""Tasks for each core: so that a slow core, or a list longer than others, does not keep all waiting at the end."""

_CORES_UNKNOWN = 8
"""Where the cluster does not tell a client of Spark Connect."""


@dataclass(frozen=True, slots=True)
class Spread:
    tasks: int
    threads: int


def spread_of(session: SparkSession, units: int) -> Spread:
    """Returns how to spread a walk from so many units."""
    cores = _CORES_UNKNOWN if is_remote() else session.sparkContext.defaultParallelism
    wanted = max(min(units // _FEWEST_UNITS, _ROUNDS * cores), units // _MOST_UNITS, min(cores, units), 1)
    most = session.conf.get(TASKS, None)
    tasks = wanted if most is None else min(wanted, max(1, int(most)))
    return Spread(tasks, max(1, int(session.conf.get(THREADS, str(_THREADS)) or _THREADS)))


def placed(units: pa.Table, tasks: int) -> pa.Table:
    """Returns the units with the task that opens each: neighbours together, as they name nearly the same."""
    share = -(-len(units) // tasks) if len(units) else 1
    return units.append_column("task", pa.array([place // share for place in range(len(units))], pa.int32()))
