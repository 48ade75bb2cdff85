"""Looking at files on executors: each task asks for its own, and only what is not as it should be comes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F

from firnline.errors import FirnlineError
from firnline.ports.engines import FAULT_COLUMNS
from firnline.ports.stores import Head, shared
from firnline.spark.judged import UNREADABLE, each_kind
from firnline.spark.slots import task_slots
from firnline.spark.streaming import described, streamed
from firnline.spark.survey import SparkSurvey
from firnline.spark.telling import forget_zip_importers, raise_told, told
from firnline.walking.faults import FAULTS, THREADS, faulty
from firnline.walking.verdicts import KEPT, VERDICTS

_ROWS = pa.schema([*FAULTS, ("error", pa.string())])
_ROWS_DDL = "key string, kind string, size bigint, found bigint, error string"


def faults(survey: SparkSurvey, store: Head, at_once: int | None, of: str) -> Iterator[pa.RecordBatch]:
    """Yields what is not as it should be, one batch at a time; nothing of the other files comes here.

    All slots ask at once, and each task has its part of the pace. What they found is kept by a local checkpoint, so
    that what was counted is what comes, and no file is asked for twice.
    """
    needed = (F.col("verdict") == VERDICTS.index(KEPT)) | (F.col("verdict") == UNREADABLE)
    rows = survey.held.files.filter((F.col("walk") == survey.walk) & needed)
    with described(rows.sparkSession, f"looking at {survey.kept.all.files:,} files", of):
        tasks = task_slots(rows.sparkSession, at_once)
        asked = rows.coalesce(tasks).mapInArrow(_asking(shared(store, tasks)), _ROWS_DDL)
        found = asked.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
        ((count, error),) = found.agg(F.count("key"), F.max("error")).collect()
    raise_told(error)
    if count:
        yield from streamed(found.select(*FAULT_COLUMNS), count, of)


class _asking:
    """Asks for the files of each batch; picklable. `look` makes every look's function another one, so that no session
    takes an earlier look for its answer.
    """

    def __init__(self, store: Head) -> None:
        self._store = store
        self._look = uuid4().hex

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_zip_importers()
        try:
            with ThreadPoolExecutor(THREADS) as pool:
                for files in (files for batch in batches for one in each_kind(batch) for files in one.batches()):
                    found = faulty(files, self._store, pool)
                    yield pa.record_batch([*found.columns, pa.nulls(len(found), pa.string())], schema=_ROWS)
        except FirnlineError as problem:
            yield _telling(told(problem))


def _telling(error: str) -> pa.RecordBatch:
    return pa.record_batch([*(pa.nulls(1, each.type) for each in FAULTS), pa.array([error])], schema=_ROWS)
