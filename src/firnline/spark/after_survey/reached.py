"""Files that walks reached, on the cluster: a question travels there, and only what it asks for comes back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import reduce
from uuid import uuid4

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from firnline.ports.engines import REACHED_COLUMNS, Survey
from firnline.ports.stores import RealNames
from firnline.spark.executors.beginning import begin_task
from firnline.spark.judged import UNREADABLE, each_kind
from firnline.spark.streaming import described, refuse_others, streamed
from firnline.spark.survey import SparkSurvey
from firnline.spark.telling import raise_told
from firnline.walking.reached import REACHED, marked, marks
from firnline.walking.verdicts import KEPT, VERDICTS

_FRAMES = 4
_ROWS = pa.schema([*REACHED, ("error", pa.string())])
_ROWS_DDL = "identity string, walk int, by_name boolean, path_mark bigint, name_mark bigint, error string"


class SparkReached:
    """Frames of rows, of which several become one with each file once.

    They are kept by local checkpoints, and never computed again: if an executor takes its rows with it, the next
    question fails, and the run is carried on with a walk of its own.
    """

    def __init__(self, session: SparkSession, everywhere: bool, real: RealNames, of: str) -> None:
        self._session = session
        self._everywhere = everywhere
        self._real = real
        self._of = of
        self._frames: list[DataFrame] = []

    def add(self, survey: Survey, walk: int, *, by_name: bool = False) -> None:
        if not isinstance(survey, SparkSurvey):
            raise TypeError("a survey of another engine")
        said = (F.col("verdict") == VERDICTS.index(KEPT)) | (F.col("verdict") == UNREADABLE)
        files = survey.held.files.filter((F.col("walk") == survey.walk) & said)
        with described(self._session, "remembering what is needed again", self._of, stoppable=False):
            marking = _marking(walk, by_name, self._everywhere, self._real)
            frame = _kept(files.mapInArrow(marking, _ROWS_DDL))
            ((count, error),) = frame.agg(F.count("identity"), F.max("error")).collect()
            raise_told(error)
            refuse_others(survey.kept.all.files, count)  # one that is missing here would not be spared
            self._frames.append(frame.drop("error"))
            if len(self._frames) > _FRAMES:
                self._frames = [_kept(_each_once(reduce(DataFrame.unionByName, self._frames)))]

    def find(self, paths: Collection[str], names: Collection[str]) -> Iterator[pa.RecordBatch]:
        if not self._frames:
            return
        rows = reduce(DataFrame.unionByName, self._frames)
        asked = [("path_mark", paths), ("name_mark", names)]
        hits = [rows.join(self._wanted(column, texts), column, "left_semi") for column, texts in asked if texts]
        if not hits:
            return
        what = "looking for files among those that are needed again"  # the look that belongs to a batch of deletes
        with described(self._session, what, self._of, stoppable=False):
            chosen = reduce(DataFrame.unionByName, hits).select(*REACHED_COLUMNS)
            found = _kept(chosen)
            count = found.count()
        if count:
            yield from streamed(found, count, self._of)

    def _wanted(self, column: str, texts: Collection[str]) -> DataFrame:
        table = pa.table({column: marks(pa.array(list(texts), pa.string()))})
        return F.broadcast(self._session.createDataFrame(table))


def _kept(rows: DataFrame) -> DataFrame:
    return rows.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)


def _each_once(rows: DataFrame) -> DataFrame:
    """Returns each file once for both ways in which it may be found, with the first walk that reached it."""
    firsts = [F.min(name).alias(name) for name in ("walk", "path_mark", "name_mark")]
    return rows.groupBy("identity", "by_name").agg(*firsts).select(*REACHED.names)


class _marking:
    """Gives each file its marks; picklable. `look` makes every walk's function another one."""

    def __init__(self, number: int, by_name: bool, everywhere: bool, real: RealNames) -> None:
        self._how = (number, by_name, everywhere, real)
        self._look = uuid4().hex

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        for one in (one for batch in batches for one in each_kind(batch)):
            if one.error is not None:
                yield pa.RecordBatch.from_pylist([{"error": one.error}], schema=_ROWS)
                continue
            for files in one.batches():
                rows = marked(files.column("identity"), *self._how)
                yield pa.record_batch([*rows.columns, pa.nulls(len(rows), pa.string())], schema=_ROWS)
