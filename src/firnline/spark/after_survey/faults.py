"""Looking at files on executors: each task asks for its own, and only what is not as it should be comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firnline.errors import FirnlineError
from firnline.ports.engines import FAULT_COLUMNS
from firnline.ports.stores import Head, shared
from firnline.spark.executors.beginning import begin_task
from firnline.spark.judged import UNREADABLE, each_kind
from firnline.spark.listing import SparkListing
from firnline.spark.slots import task_slots
from firnline.spark.streaming import described, refuse_others, streamed
from firnline.spark.survey import SparkSurvey
from firnline.spark.telling import raise_told, told
from firnline.walking.faults import FAULTS, THREADS, faulty, unproved
from firnline.walking.verdicts import KEPT, VERDICTS

_ROWS = pa.schema([*FAULTS, ("looked_at", pa.int64()), ("error", pa.string())])
_FILES = pa.schema([*(FAULTS.field(name) for name in FAULTS.names[:-1]), ("error", pa.string())])
_FILES_DDL = "key string, kind string, size bigint, error string"
FindFiles = Callable[[Iterable[pa.RecordBatch]], Iterator[tuple[pa.RecordBatch, int]]]
_ROWS_DDL = "key string, kind string, size bigint, found bigint, looked_at bigint, error string"


@dataclass(frozen=True, slots=True)
class Looking:
    """A look at the needed files of a survey. `at_once`, `of` and `turn` are the engine's."""

    survey: SparkSurvey
    at_once: int | None
    of: str
    turn: AbstractContextManager[object]

    def faults(self, store: Head, listed: SparkListing | None) -> Iterator[pa.RecordBatch]:
        """Yields what is not as it should be, one batch at a time; nothing of the other files comes here.

        All slots ask at once, and each task has its part of the pace. What they found is kept by a local checkpoint, so
        that what was counted is what comes, and no file is asked for twice. Raises StoreError unless all files were
        looked at that the survey counted: one that nobody asked for would pass for sound.
        """
        rows = self._needed() if listed is None else self._beside(listed)
        every = self.survey.kept.all.files
        with self.turn, described(rows.sparkSession, f"looking at {every:,} files", self.of):
            tasks = task_slots(rows.sparkSession, self.at_once)
            files = _in_packets if listed is None else _in_rows
            asked = rows.coalesce(tasks).mapInArrow(_asking(shared(store, tasks), files), _ROWS_DDL)
            found = asked.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
            ((count, looked_at, error),) = found.agg(F.count("key"), F.sum("looked_at"), F.max("error")).collect()
        raise_told(error)
        refuse_others(every, looked_at or 0)
        if count:
            yield from streamed(found.filter("key is not null").select(*FAULT_COLUMNS), count, self.of)

    def _needed(self) -> DataFrame:
        needed = (F.col("verdict") == VERDICTS.index(KEPT)) | (F.col("verdict") == UNREADABLE)
        return self.survey.held.files.filter((F.col("walk") == self.survey.walk) & needed)

    def _beside(self, listed: SparkListing) -> DataFrame:
        """Returns the needed files, one in a row, each with the size that was listed of it: a key that is in the
        listing twice has one of the two, and no file has two rows.
        """
        once = listed.rows.groupBy("key").agg(F.min("size").alias("listed"))
        return self._needed().mapInArrow(_unpacked, _FILES_DDL).join(once, "key", "left")


def _unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the files of packets, one in a row, and what an executor could not read."""
    begin_task()
    try:
        for files, _ in _in_packets(batches):
            columns = [*(files.column(name) for name in _FILES.names[:-1]), pa.nulls(len(files), pa.string())]
            yield pa.record_batch(columns, schema=_FILES)
    except FirnlineError as problem:
        yield pa.RecordBatch.from_pylist([{"error": told(problem)}], _FILES)


def _in_packets(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yields files that are to be asked for, and of how many files they are all that have to be."""
    for batch in batches:
        for one in each_kind(batch):
            for files in one.batches():
                yield files, len(files)


def _in_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yields the same of files beside which a listing's sizes stand. Raises what could not be read."""
    for batch in batches:
        raise_told(pc.max(batch.column("error")).as_py())
        yield batch.filter(unproved(batch.column("size"), batch.column("listed"))), len(batch)


class _asking:
    """Asks for the files of each batch; picklable. `look` makes every look's function another one, so that no session
    takes an earlier look for its answer. `files` finds them in the batches.
    """

    def __init__(self, store: Head, files: FindFiles) -> None:
        self._store, self._files = store, files
        self._look = uuid4().hex

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        looked_at = 0
        try:
            with ThreadPoolExecutor(THREADS) as pool:
                for due, count in self._files(batches):
                    found = faulty(due, self._store, pool)
                    said = (pa.nulls(len(found), each.type) for each in list(_ROWS)[len(FAULTS) :])
                    yield pa.record_batch([*found.columns, *said], schema=_ROWS)
                    looked_at += count
            yield pa.RecordBatch.from_pylist([{"looked_at": looked_at}], _ROWS)
        except FirnlineError as problem:
            yield pa.RecordBatch.from_pylist([{"error": told(problem)}], _ROWS)
