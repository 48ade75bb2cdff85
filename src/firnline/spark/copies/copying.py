"""Copies on executors: each task makes its copies and reports one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from firnline.errors import FirnlineError
from firnline.ports.catalogs import Still, always
from firnline.ports.copying import Copy, CopyFate, CopyJob, CopyOutcome, Stored, Verify
from firnline.ports.packing import BundleJob, BundleOutcome, Pack
from firnline.ports.relocating import Relocate
from firnline.ports.stores import shared
from firnline.spark.copies.packing import BundleTask, packed_on_executors
from firnline.spark.executors.beginning import begin_task
from firnline.spark.slots import task_slots
from firnline.spark.streaming import described
from firnline.spark.telling import raise_told, told

_MOST_ROWS = 32_000
"""Of one call: what the driver holds of a list at a time, with one outcome for each."""
_TASKS_PER_SLOT = 4
"""Files differ in size: a slot that was lucky takes another task."""

_OUTCOME = "row long, target string, fate string, size long, checksum string, error string"
_TEXT, _NUMBER = pa.string(), pa.int64()
_OUTCOMES = pa.schema(
    [("row", _NUMBER), ("target", _TEXT), ("fate", _TEXT), ("size", _NUMBER), ("checksum", _TEXT), ("error", _TEXT)]
)
_JOBS = pa.schema([("source", _TEXT), ("target", _TEXT), ("size", _NUMBER), ("kind", _TEXT)])
_STORED = pa.schema([("target", _TEXT), ("size", _NUMBER), ("checksum", _TEXT)])

Work = Callable[[Sequence[tuple[Any, ...]]], list[CopyOutcome]]


@dataclass(frozen=True, slots=True)
class SparkCopyMany:
    """`at_once` tasks copy at a time; None: all task slots of the session. `turn` is one for all that copy in a
    process: jobs of several tables come one after the other, since each has the whole pace.
    """

    session: SparkSession
    of: str = ""
    at_once: int | None = None
    turn: Any = field(default_factory=Lock, repr=False)

    @property
    def rows(self) -> int:
        return _MOST_ROWS

    def copy_many(self, jobs: Sequence[CopyJob], copy: Copy, still: Still = always) -> list[CopyOutcome]:
        """Asks before the job, and after it: executors do not know the lease. One that was cut off and comes back
        later writes what the plan says under names that are only for that, and replaces nothing.
        """
        with self.turn:
            still()
            slots = task_slots(self.session, self.at_once)
            outcomes = self._spread(jobs, _JOBS, partial(_copied, copy.share(slots)), slots, "copying")
            still()
            return outcomes

    def verify_many(self, copies: Sequence[Stored], verify: Verify) -> list[CopyOutcome]:
        with self.turn:
            slots = task_slots(self.session, self.at_once)
            return self._spread(copies, _STORED, partial(_verified, verify.share(slots)), slots, "looking at")

    def pack_many(
        self, jobs: Sequence[BundleJob], pack: Pack, relocate: Relocate, still: Still = always
    ) -> list[BundleOutcome]:
        """As copies: executors do not know the lease."""
        with self.turn:
            still()
            slots = task_slots(self.session, self.at_once)
            packing = BundleTask(pack.share(slots), shared(relocate, slots))
            tasks = min(len(jobs), slots if self.at_once else slots * _TASKS_PER_SLOT)
            outcomes = packed_on_executors(self.session, jobs, packing, tasks, self.of)
            still()
            return outcomes

    def _spread(
        self, each: Sequence[CopyJob] | Sequence[Stored], schema: pa.Schema, work: Work, slots: int, doing: str
    ) -> list[CopyOutcome]:
        if not each:
            return []
        tasks = min(len(each), slots if self.at_once else slots * _TASKS_PER_SLOT)
        columns = [pa.array(column, kind) for column, kind in zip(zip(*each, strict=True), schema.types, strict=True)]
        numbered = pa.table([pa.array(range(len(each)), pa.int64()), *columns], names=["row", *schema.names])
        with described(self.session, f"{doing} {len(each):,} files", self.of):
            rows = self.session.createDataFrame(numbered).repartition(tasks)
            done = rows.mapInArrow(_Working(work), _OUTCOME).collect()
        raise_told(next((row.error for row in done if row.fate is None), None))
        by_row = {
            row.row: CopyOutcome(row.target, CopyFate(row.fate), row.size, row.checksum, row.error) for row in done
        }
        return [by_row[number] for number in range(len(each))]


def _copied(copy: Copy, rows: Sequence[tuple[Any, ...]]) -> list[CopyOutcome]:
    return copy.copy([CopyJob(*row) for row in rows])


def _verified(verify: Verify, rows: Sequence[tuple[Any, ...]]) -> list[CopyOutcome]:
    return verify.verify([Stored(*row) for row in rows])


class _Working:
    """Works on each batch; picklable, so that it reaches executors as it is.

    A task that Spark runs again copies again: what lies there already is reported as present. A store that takes no
    request at all any more is told in a row without a fate, and not asked four times.
    """

    def __init__(self, work: Work) -> None:
        self._work = work

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        try:
            for batch in batches:
                numbers, *columns = (column.to_pylist() for column in batch.columns)
                outcomes = self._work(list(zip(*columns, strict=True)))
                yield _rows([(number, *each) for number, each in zip(numbers, outcomes, strict=True)])
        except FirnlineError as problem:
            yield _rows([(None, None, None, None, None, told(problem))])


def _rows(said: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = [pa.array(column, kind) for column, kind in zip(zip(*said, strict=True), _OUTCOMES.types, strict=True)]
    return pa.record_batch(columns, schema=_OUTCOMES)
