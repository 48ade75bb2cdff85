"""Deletes on executors: each task sends its keys and reports key by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from firnline.errors import FirnlineError
from firnline.ports.delete import Delete, DeleteOutcome, Doomed, Fate, MaySend
from firnline.spark.importers import forget_zip_importers
from firnline.spark.troubles import in_one_line, raise_told, told

_KEYS_PER_TASK = 2_000
_OUTCOME = "key string, fate string, error string"


@dataclass(frozen=True, slots=True)
class SparkDeleteMany:
    session: SparkSession
    rows: int = 16 * _KEYS_PER_TASK

    def delete_many(self, doomed: Sequence[Doomed], delete: Delete, may_send: MaySend) -> list[DeleteOutcome]:
        """Asks once, before the job: executors do not know the lease, so a call must be short against its margin.

        Each task gets an even share of the budget: together they never send more than it allows.
        """
        may_send()
        tasks = max(1, len(doomed) // _KEYS_PER_TASK)
        columns = [pa.array([each.key for each in doomed]), pa.array([each.etag for each in doomed], pa.string())]
        rows = self.session.createDataFrame(pa.table(columns, names=list(Doomed._fields))).repartition(tasks)
        with in_one_line("deleting"):
            done = rows.mapInArrow(_deleting(delete.share(tasks)), _OUTCOME).collect()
        raise_told(next((row.error for row in done if row.fate is None), None))
        by_key = {row.key: DeleteOutcome(row.key, Fate(row.fate), row.error) for row in done}
        return [by_key[each.key] for each in doomed]


class _deleting:
    """Deletes each batch of keys; picklable, so that it reaches executors as it is.

    A task that Spark runs again deletes again: what is gone already is reported as missing, which is no failure. A
    store that takes no delete at all any more is told in a row without a fate, and not asked four times.
    """

    def __init__(self, delete: Delete) -> None:
        self._delete = delete

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_zip_importers()
        try:
            for batch in batches:
                columns = (batch.column(name).to_pylist() for name in Doomed._fields)
                outcomes = self._delete.delete([Doomed(*row) for row in zip(*columns, strict=True)])
                yield _rows([(each.key, each.fate.value, each.error) for each in outcomes])
        except FirnlineError as problem:
            yield _rows([(None, None, told(problem))])


def _rows(said: Sequence[tuple[str | None, str | None, str]]) -> pa.RecordBatch:
    columns = [pa.array(column, pa.string()) for column in zip(*said, strict=True)]
    return pa.record_batch(columns, names=["key", "fate", "error"])
