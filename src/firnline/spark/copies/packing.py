"""Bundles on executors: each task writes its bundles and reports one by one.

Jobs and outcomes travel as text: both are nested, and a bundle has as many members as it has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from firnline.errors import FirnlineError
from firnline.ports.copying import CopyJob
from firnline.ports.packing import BundleJob, BundleOutcome, Pack, PackedFile
from firnline.ports.relocating import Relocate
from firnline.spark.executors.beginning import begin_task
from firnline.spark.streaming import described
from firnline.spark.telling import raise_told, told

_SAID = "row long, said string, error string"
_ROWS = pa.schema([("row", pa.int64()), ("said", pa.string()), ("error", pa.string())])


@dataclass(frozen=True, slots=True)
class BundleTask:
    """Writes the bundles of each batch; picklable, so that it reaches executors as it is.

    A task that Spark runs again finds what it wrote before, and takes it for its own where it has the same bytes. A
    store that takes no request at all any more is told in a row without a number, and not asked four times.
    """

    pack: Pack
    relocate: Relocate

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        try:
            for batch in batches:
                for number, job in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    (outcome,) = self.pack.pack((_job(job),), self.relocate)
                    yield _row(number, json.dumps(outcome), None)
        except FirnlineError as problem:
            yield _row(None, None, told(problem))


def packed_on_executors(
    session: SparkSession, jobs: Sequence[BundleJob], task: BundleTask, tasks: int, of: str
) -> list[BundleOutcome]:
    """Returns one outcome per job, in order. Raises what an executor told."""
    if not jobs:
        return []
    asked = pa.table([pa.array(range(len(jobs)), pa.int64()), pa.array(map(json.dumps, jobs))], names=["row", "job"])
    with described(session, f"packing {len(jobs):,} bundles", of):
        rows = session.createDataFrame(asked).repartition(tasks)
        done = rows.mapInArrow(task, _SAID).collect()
    raise_told(next((row.error for row in done if row.row is None), None))
    by_row = {row.row: _outcome(row.said) for row in done}
    return [by_row[number] for number in range(len(jobs))]


def _job(said: str) -> BundleJob:
    target, root, members = json.loads(said)
    return BundleJob(target, root, tuple(CopyJob(*each) for each in members))


def _outcome(said: str) -> BundleOutcome:
    target, size, checksum, packed, error = json.loads(said)
    return BundleOutcome(target, size, checksum, tuple(PackedFile(*each) for each in packed), error)


def _row(number: int | None, said: str | None, error: str | None) -> pa.RecordBatch:
    return pa.record_batch([[number], [said], [error]], schema=_ROWS)
