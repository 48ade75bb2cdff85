"""Listing on executors: each task reads some pieces to their end.

The rows are kept by a local checkpoint and never computed again. A listing that Spark quietly repeated after the roots
were read would show files that the roots do not know yet; where an executor takes its rows with it, the job that needs
them fails instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import uuid4

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from firnline.errors import FirnlineError
from firnline.model.files import Tally
from firnline.ports.listings import LISTED_COLUMNS, KeyRange, ListRanges
from firnline.ports.stores import shared
from firnline.spark.executors.beginning import begin_task
from firnline.spark.spread import paces
from firnline.spark.streaming import described
from firnline.spark.telling import raise_told, told

_PIECES = pa.schema(
    [
        ("folder", pa.string()),
        ("deep", pa.bool_()),
        ("after", pa.string()),
        ("until", pa.string()),
        ("block", pa.int32()),
    ]
)
_ROWS = pa.schema(
    [
        ("key", pa.string()),
        ("size", pa.int64()),
        ("modified_ms", pa.int64()),
        ("etag", pa.string()),
        ("error", pa.string()),
    ]
)
_ROWS_DDL = "key string, size bigint, modified_ms bigint, etag string, error string"
_FEWEST_TASKS, _MOST_TASKS, _PIECES_PER_TASK = 8, 2_000, 8


@dataclass(frozen=True, slots=True)
class SparkListing:
    """A listing whose rows stay on the cluster until nobody holds this any more."""

    rows: DataFrame
    all: Tally

    def close(self) -> None:
        return None


def list_pieces(
    session: SparkSession, pieces: Iterable[KeyRange], source: ListRanges, of: str = "", at_once: int | None = None
) -> SparkListing:
    """Returns the listing, complete, `at_once` pieces at a time. Raises what any piece raised."""
    asked = [(piece.folder, piece.deep, piece.after, piece.until, piece.block) for piece in pieces]
    columns = list(zip(*asked, strict=True)) or [() for _ in _PIECES]
    table = pa.table([pa.array(column, field.type) for column, field in zip(columns, _PIECES, strict=True)], _PIECES)
    tasks = min(max(len(asked), 1), _MOST_TASKS, max(_FEWEST_TASKS, len(asked) // _PIECES_PER_TASK))
    tasks = min(tasks, at_once or tasks)
    with described(session, f"listing {len(asked):,} pieces", of):
        spread = session.createDataFrame(table).repartition(tasks)
        paced = shared(source, paces(session, tasks, at_once))
        found = spread.mapInArrow(_listing(paced), _ROWS_DDL).localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)
        sums = found.agg(F.count("key"), F.sum("size"), F.max("error")).collect()
    ((count, size, error),) = sums
    raise_told(error)
    return SparkListing(found.select(*LISTED_COLUMNS), Tally(count, size or 0))


class _listing:
    """Lists the pieces of each batch; picklable, so that it reaches executors as it is.

    `look` makes every listing's function another one, so that no session takes an earlier listing for its answer.
    """

    def __init__(self, source: ListRanges) -> None:
        self._source = source
        self._look = uuid4().hex

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        try:
            for batch in batches:
                for row in batch.to_pylist():
                    for found in self._source.batches(KeyRange(**row)):
                        yield _without_error(found)
        except FirnlineError as problem:
            yield pa.record_batch([[None], [None], [None], [None], [told(problem)]], schema=_ROWS)


def _without_error(found: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([*found.columns, pa.nulls(len(found), pa.string())], schema=_ROWS)
