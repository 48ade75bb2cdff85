"""Over how many tasks a walk is spread, and how many units each opens at a time."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from firnline.errors import UsageError
from firnline.model.spans import Numbers, numbers

TASKS, THREADS = "spark.firnline.walk.tasks", "spark.firnline.walk.threads"
"""Settings of a session: the most tasks of a walk, and how many units a task opens at a time."""

_THREADS = 4
_FEWEST_UNITS, _MOST_UNITS = 64, 1_024
"""Of a task. A task costs about 0.1 s before it opens anything; one that opens many leaves others waiting for it."""

_ROUNDS, _ROUNDS_HERE = 2, 1
"""Tasks for each core: so that a slow core, or a list longer than others, does not keep all waiting at the end. Those
of this machine are alike, and every task of Python costs them time.
"""

_CORES_UNKNOWN = 8
"""Where the cluster does not tell a client of Spark Connect."""


_OF_A_PART, _MOST_PARTS = 100_000, 4_000
"""So many files are judged in one part: a few megabytes of rows. Whatever the session says of its own shuffles."""


@dataclass(frozen=True, slots=True)
class Spread:
    """`parts` is how many tasks judge files; `paces` into how many parts the pace is divided, one for each task."""

    tasks: int
    threads: int
    parts: int
    paces: int = 1


def spread_of(
    session: SparkSession, units: int, entries: int = 0, passes: int = 1, at_once: int | None = None
) -> Spread:
    """Returns how to spread a walk from so many units, over tables of about so many files; in so many passes side by
    side, of which all together may have `at_once` requests under way.
    """
    cores = _CORES_UNKNOWN if is_remote() else session.sparkContext.defaultParallelism
    rounds = _ROUNDS_HERE if is_local(session) else _ROUNDS
    wanted = max(min(units // _FEWEST_UNITS, rounds * cores), units // _MOST_UNITS, min(cores, units), 1)
    tasks = min(wanted, _number(session, TASKS, wanted), max(1, (at_once or wanted * passes) // passes))
    parts = min(max(tasks, cores, entries // _OF_A_PART), _MOST_PARTS)
    return Spread(tasks, _number(session, THREADS, _THREADS), parts, paces(session, tasks * passes, at_once))


def is_local(session: SparkSession) -> bool:
    """Tells whether the tasks run beside this process, on its cores: those of `local-cluster` do not."""
    return not is_remote() and str(session.sparkContext.master).partition("[")[0] == "local"


def paces(session: SparkSession, tasks: int, at_once: int | None) -> int:
    """Returns into how many parts the pace of a job with so many tasks is divided: one for each slot of the session, or
    for each task where nobody knows the slots.

    1. Four tables are looked at side by side, and each is a job of one task.
    2. If each of these tasks had all of its job's pace, the store would be asked for four times as much as was said.

    Where `at_once` was said jobs come one after the other, so only this one's tasks count.
    """
    most = side_by_side(session, tasks if at_once else sys.maxsize)
    return most if most < sys.maxsize else tasks


def side_by_side(session: SparkSession, tasks: int) -> int:
    """Returns how many of these tasks can run at once, at most: all, unless the session is sure to have fewer cores.

    Those that are there now may be few of those that dynamic allocation brings, and a client of Spark Connect is not
    told of any: then executors count by their largest number, if that was said, and else every task does.
    """
    if is_remote():
        return tasks
    if session.conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return min(tasks, _slots(session, "spark.dynamicAllocation.maxExecutors") or tasks)
    there = session.sparkContext.defaultParallelism
    return min(tasks, max(there, _slots(session, "spark.executor.instances") or there))


def _slots(session: SparkSession, executors: str) -> int | None:
    """Returns the cores of so many executors as a setting says; None where it does not."""
    said = [session.conf.get(name, None) or "" for name in (executors, "spark.executor.cores")]
    return math.prod(map(int, said)) if all(each.isdecimal() for each in said) else None


def _number(session: SparkSession, name: str, default: int) -> int:
    """Returns a setting of the session. Raises UsageError where it is no number above zero."""
    said = session.conf.get(name, None)
    if said is None or said == "":
        return default
    if not said.strip().isdecimal() or int(said) < 1:
        raise UsageError(f"the setting {name} of the Spark session is {said!r}", hint="write a number above zero")
    return int(said)


def placed(units: int, tasks: int) -> Numbers:
    """Returns the task that opens each of so many units: neighbours together, as they name nearly the same."""
    share = max(1, -(-units // tasks))
    return numbers(np.arange(units) // share)
