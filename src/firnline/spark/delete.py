"""Deletes on executors: each task sends its keys and reports key by key."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from firnline.errors import FirnlineError, LeaseHeld
from firnline.ports.delete import Delete, DeleteOutcome, Doomed, Fate, Lend, MaySend
from firnline.spark.executors.beginning import begin_task
from firnline.spark.slots import task_slots
from firnline.spark.streaming import described
from firnline.spark.telling import raise_told, told

_MOST_KEYS = 32_000
"""Of one call: what the driver holds of a list at a time, with one outcome for each."""

_FEWEST_KEYS = 10
"""Of a task: a store that asked for less is sent no smaller request."""

_OUTCOME = "key string, fate string, error string"


@dataclass(frozen=True, slots=True)
class SparkDeleteMany:
    """`at_once` tasks send at a time, and one call brings at most `most` keys; None: all task slots of the session, and
    as many keys as serve well. `turn` is one for all that delete in a process: jobs of several tables come one after
    the other.
    """

    session: SparkSession
    of: str = ""
    at_once: int | None = None
    most: int | None = None
    turn: Any = field(default_factory=Lock, repr=False)

    @property
    def rows(self) -> int:
        return min(_MOST_KEYS, self.most or sys.maxsize)

    def delete_many(
        self, doomed: Sequence[Doomed], delete: Delete, may_send: MaySend, lend: Lend | None = None
    ) -> list[DeleteOutcome]:
        """Asks once, before the job, and tells executors by when all must be sent: they do not know the lease.

        1. A task deletes; its executor is cut off, or its process frozen, and Spark runs the task elsewhere.
        2. The driver goes too, and another process takes over the lease: it spares what a commit named meanwhile.
        3. The first executor is back, and goes on with its keys.

        Each task gets an even share of the budget: together they never send more than it allows. Tasks of another job
        would not know of these, and have the whole budget too: so a job waits for its turn, and then asks.
        """
        with self.turn:
            may_send()
            return self._delete_many(doomed, delete, lend)

    def _delete_many(self, doomed: Sequence[Doomed], delete: Delete, lend: Lend | None) -> list[DeleteOutcome]:
        tasks = min(max(1, len(doomed) // _FEWEST_KEYS), task_slots(self.session, self.at_once))
        columns = [pa.array([each.key for each in doomed]), pa.array([each.etag for each in doomed], pa.string())]
        with described(self.session, f"deleting {len(doomed):,} files", self.of, stoppable=False):
            rows = self.session.createDataFrame(pa.table(columns, names=list(Doomed._fields))).repartition(tasks)
            until_ms = None if lend is None else _now_ms() + lend()
            done = rows.mapInArrow(_deleting(delete.share(tasks), until_ms), _OUTCOME).collect()
        raise_told(next((row.error for row in done if row.fate is None), None))
        by_key = {row.key: DeleteOutcome(row.key, Fate(row.fate), row.error) for row in done}
        return [by_key[each.key] for each in doomed]


class _deleting:
    """Deletes each batch of keys; picklable, so that it reaches executors as it is.

    A task that Spark runs again deletes again: what is gone already is reported as missing, which is no failure. A
    store that takes no delete at all any more is told in a row without a fate, and not asked four times.
    """

    def __init__(self, delete: Delete, until_ms: int | None) -> None:
        self._delete = delete
        self._until_ms = until_ms

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        try:
            for batch in batches:
                columns = (batch.column(name).to_pylist() for name in Doomed._fields)
                outcomes = self._delete.delete([Doomed(*row) for row in zip(*columns, strict=True)], self._may_send)
                yield _rows([(each.key, each.fate.value, each.error) for each in outcomes])
        except FirnlineError as problem:
            yield _rows([(None, None, told(problem))])

    def _may_send(self) -> None:
        if self._until_ms is not None and _now_ms() >= self._until_ms:
            raise LeaseHeld(
                "an executor had files left to delete when their time was over, and sent nothing more",
                hint="`firnline resume` goes on; an executor's clock that is minutes ahead does this too",
            )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _rows(said: Sequence[tuple[str | None, str | None, str]]) -> pa.RecordBatch:
    columns = [pa.array(column, pa.string()) for column in zip(*said, strict=True)]
    return pa.record_batch(columns, names=["key", "fate", "error"])
