"""How many tasks a session runs at once: over so many, and no more, is work spread that keeps to one pace.

Each task has an even part of the pace. One for which there is no slot yet would hold its part back from the others.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from firnline.spark.spread import side_by_side
from firnline.spark.streaming import named

_MOST = 10_000
"""More slots than any session that is asked from afar is taken to have."""


def task_slots(session: SparkSession, at_once: int | None = None) -> int:
    """Returns how many tasks run at once now, or will by what the session's settings say; `at_once` at most.

    Executors that dynamic allocation may bring one day do not count unless their largest number was said.
    """
    most = side_by_side(session, sys.maxsize)
    slots = most if most < sys.maxsize else _there(session)
    return max(1, min(slots, at_once or slots))


def _there(session: SparkSession) -> int:
    """Returns the slots that are there now. A client of Spark Connect is not told: it sees over how many tasks the
    session spreads numbers if nothing else is said.
    """
    if not is_remote():
        return session.sparkContext.defaultParallelism
    with named(session, "counting slots"):
        tasks = session.range(_MOST).select(F.spark_partition_id().alias("task"))
        ((last,),) = tasks.agg(F.max("task")).collect()
    return int(last) + 1
