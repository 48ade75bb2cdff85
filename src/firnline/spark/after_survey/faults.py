"""Looking at files on executors: each task asks for its own, and only what is not as it should be comes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from uuid import uuid4

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F

from firnline.errors import FirnlineError
from firnline.ports.engines import FAULT_COLUMNS
from firnline.ports.stores import Head, shared
from firnline.spark.judged import UNREADABLE, each_kind
from firnline.spark.slots import task_slots
from firnline.spark.streaming import described, refuse_others, streamed
from firnline.spark.survey import SparkSurvey
from firnline.spark.telling import forget_zip_importers, raise_told, told
from firnline.walking.faults import FAULTS, THREADS, faulty
from firnline.walking.verdicts import KEPT, VERDICTS

_ROWS = pa.schema([*FAULTS, ("looked_at", pa.int64()), ("error", pa.string())])
_ROWS_DDL = "key string, kind string, size bigint, found bigint, looked_at bigint, error string"


def faults(
    survey: SparkSurvey, store: Head, at_once: int | None, of: str, turn: AbstractContextManager[object]
) -> Iterator[pa.RecordBatch]:
    """Yields what is not as it should be, one batch at a time; nothing of the other files comes here.

    All slots ask at once, and each task has its part of the pace. What they found is kept by a local checkpoint, so
    that what was counted is what comes, and no file is asked for twice. Raises StoreError unless all files were looked
    at that the survey counted: one that nobody asked for would pass for sound.
    """
    needed = (F.col("verdict") == VERDICTS.index(KEPT)) | (F.col("verdict") == UNREADABLE)
    rows = survey.held.files.filter((F.col("walk") == survey.walk) & needed)
    with turn, described(rows.sparkSession, f"looking at {survey.kept.all.files:,} files", of):
        tasks = task_slots(rows.sparkSession, at_once)
        asked = rows.coalesce(tasks).mapInArrow(_asking(shared(store, tasks)), _ROWS_DDL)
        found = asked.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
        ((count, looked_at, error),) = found.agg(F.count("key"), F.sum("looked_at"), F.max("error")).collect()
    raise_told(error)
    refuse_others(survey.kept.all.files, looked_at or 0)
    if count:
        yield from streamed(found.filter("key is not null").select(*FAULT_COLUMNS), count, of)


class _asking:
    """Asks for the files of each batch; picklable. `look` makes every look's function another one, so that no session
    takes an earlier look for its answer.
    """

    def __init__(self, store: Head) -> None:
        self._store = store
        self._look = uuid4().hex

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_zip_importers()
        looked_at = 0
        try:
            with ThreadPoolExecutor(THREADS) as pool:
                for files in (files for batch in batches for one in each_kind(batch) for files in one.batches()):
                    found = faulty(files, self._store, pool)
                    said = (pa.nulls(len(found), each.type) for each in list(_ROWS)[len(FAULTS) :])
                    yield pa.record_batch([*found.columns, *said], schema=_ROWS)
                    looked_at += len(files)
            yield pa.RecordBatch.from_pylist([{"looked_at": looked_at}], _ROWS)
        except FirnlineError as problem:
            yield pa.RecordBatch.from_pylist([{"error": told(problem)}], _ROWS)
