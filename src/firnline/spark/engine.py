"""The Spark engine behind the Engine port."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from firnline import errors
from firnline.model.files import FileKind, Root, Tally, Totals
from firnline.ports.engines import FILE_COLUMNS, SPARED_REASONS, Territory, root_columns
from firnline.ports.formats import Expand
from firnline.ports.progress import Progress, Silent
from firnline.spark.importers import forget_zip_importers
from firnline.spark.pipeline import KEPT, ROWS, UNREADABLE, VICTIM, has_several_stems, judge, walk

_FEWEST_TASKS, _MOST_TASKS, _UNITS_PER_TASK = 8, 2_000, 16
_ROWS_PER_JOB = 250_000
_SUMMARY = ("verdict", "kind", "count", "bytes", "error")


@dataclass(frozen=True, slots=True)
class SparkSurvey:
    """A survey whose files stay on the cluster; totals were computed once, batches are streamed."""

    files: DataFrame
    judged: DataFrame
    summary: tuple[tuple[str, str, int, int, str | None], ...]
    units_opened: int

    @property
    def kept(self) -> Totals:
        return self._totals(KEPT)

    @property
    def victims(self) -> Totals:
        return self._totals(VICTIM)

    @property
    def spared(self) -> dict[str, Tally]:
        tallies = {reason: self._totals(reason).all for reason in SPARED_REASONS}
        return {reason: tally for reason, tally in tallies.items() if tally.files}

    def victim_batches(self) -> Iterator[pa.RecordBatch]:
        return self._batches(VICTIM)

    def kept_batches(self) -> Iterator[pa.RecordBatch]:
        return self._batches(KEPT)

    def close(self) -> None:
        self.files.unpersist()

    def _totals(self, verdict: str) -> Totals:
        return Totals.of((FileKind(kind), Tally(n, size)) for said, kind, n, size, _ in self.summary if said == verdict)

    def _batches(self, verdict: str) -> Iterator[pa.RecordBatch]:
        """Yields one partition's batches at a time: each batch crosses as one Arrow message, not row by row.

        Every partition costs a job of its own, so there are only as many as the rows need.
        """
        parts = 1 + self._totals(verdict).all.files // _ROWS_PER_JOB
        chosen = self.judged.filter(F.col("verdict") == verdict).select(*FILE_COLUMNS).coalesce(parts)
        for row in chosen.mapInArrow(_as_messages, "message binary").toLocalIterator():
            with pa.ipc.open_stream(row.message) as stream:
                yield from stream


def _as_messages(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    forget_zip_importers()
    for batch in batches:
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.record_batch([pa.array([sink.getvalue()], pa.binary())], names=["message"])


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """Runs the pipeline on a session that the caller passes in."""

    session: SparkSession
    progress: Progress = field(default_factory=Silent)

    @property
    def name(self) -> str:
        return "spark"

    def survey(self, roots: Iterable[Root], expand: Expand, territory: Territory) -> SparkSurvey:
        start = _root_table(roots)
        tasks = min(_MOST_TASKS, max(_FEWEST_TASKS, len(start) // _UNITS_PER_TASK))
        self.progress.step("walking on Spark", 0, None)
        files = walk(self.session.createDataFrame(start), expand, tasks).persist()
        try:
            judged = judge(files, territory, near_misses=has_several_stems(files))
            summary = _summary(judged)
            _raise_unreadable(summary)
        except BaseException:
            files.unpersist()
            raise
        opened = sum(count for _, kind, count, _, _ in summary if kind in {k.value for k in expand.order})
        return SparkSurvey(files, judged, summary, opened)


def _root_table(roots: Iterable[Root]) -> pa.Table:
    columns = root_columns(roots)
    return pa.table({**columns, "error": [None] * len(columns["key"])}, schema=ROWS)


def _summary(judged: DataFrame) -> tuple[tuple[str, str, int, int, str | None], ...]:
    sums = judged.groupBy("verdict", "kind").agg(
        F.count("*").alias("count"), F.coalesce(F.sum("size"), F.lit(0)).alias("bytes"), F.max("error").alias("error")
    )
    return tuple(tuple(row[name] for name in _SUMMARY) for row in sums.collect())


def _raise_unreadable(summary: Iterable[tuple[str, str, int, int, str | None]]) -> None:
    for verdict, _, _, _, said in summary:
        if verdict == UNREADABLE and said:
            kind, message, hint = json.loads(said)
            raise getattr(errors, kind)(message, hint)
