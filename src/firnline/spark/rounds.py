"""The rounds of a walk on Spark: in each, executors open the units of some kinds, and rows are dealt to tasks.

Rows travel through every round: a unit that is due is replaced by itself (now with its size) and by what it names, any
other row passes unchanged. So the lineage is one chain, nothing is cached, and each unit is opened once, however many
tables read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from firnline.memory import keep_freed_memory
from firnline.model.files import File, FileKind
from firnline.model.spans import Numbers, Spans, in_order, merged
from firnline.ports.expanding import Expanded, Failures, Opener, opener
from firnline.spark.spread import Spread, placed
from firnline.spark.telling import forget_zip_importers, rows_to_tell, told
from firnline.spark.travelling import (
    FOLDING_DDL,
    PLAIN_DDL,
    ROWS,
    ROWS_DDL,
    Parts,
    as_written,
    named,
    parted,
    spans_of,
    start_rows,
    to_parts,
)
from firnline.walking.axis import Pass, WalkMeans
from firnline.walking.opening import Losses, opened_once


def walk(session: SparkSession, begun: Pass, spread: Spread, parts: Parts) -> DataFrame:
    """Returns the rows that units of all kinds say, each with the part that judges it.

    Every walk looks for itself: a session hands out what it holds in memory of any plan that is equal, so an earlier
    walk from the same roots would answer for a unit that is gone by now.
    """
    look = uuid4().hex
    start = placed(start_rows(begun.starts, begun.spans), spread.tasks)
    dealt_out = session.createDataFrame(start).repartitionById(spread.tasks, F.col("task")).drop("task")
    *upper, last = _rounds(begun.means)
    for kinds in upper:
        opening = Opening(begun.means, kinds, look, spread)
        dealt_out = dealt(dealt_out.mapInArrow(opening, ROWS_DDL), spread.tasks)
    opening = Opening(begun.means, last, look, spread, parts)
    return dealt_out.mapInArrow(opening, FOLDING_DDL if begun.means.folds else PLAIN_DDL)


def _rounds(means: WalkMeans) -> list[tuple[FileKind, ...]]:
    """Returns the kinds that are opened in each round. Where units fold, all kinds but the last are roots: they can be
    opened at once.
    """
    order = means.order
    return [order[:-1], order[-1:]] if means.folds else [(kind,) for kind in order]


def dealt(rows: DataFrame, tasks: int) -> DataFrame:
    """Returns what is said of each file as one row, dealt to tasks like cards, the longest first: each task gets as
    much to read.

    Hands of cards are dealt apart, so that no single task has to sort them all. Rows of one file stand in an order: a
    task that runs again must deal the same way, or a row comes twice and another never.
    """
    hand = F.pmod(F.xxhash64("identity"), F.lit(tasks)).alias("hand")
    each = _together(rows.select("*", hand).repartition(tasks, "hand"))
    longest_first = Window.partitionBy("hand").orderBy(F.desc_nulls_first("size"), "identity", "fold", "op")
    task = F.pmod(F.row_number().over(longest_first) + F.col("hand"), F.lit(tasks))
    return each.withColumn("task", task.cast("int")).repartitionById(tasks, F.col("task")).select(ROWS.names)


def _together(rows: DataFrame) -> DataFrame:
    """Returns the rows that say the same of one file as one, with the spans of all."""
    return rows.groupBy("hand", "identity", "fold", "op").agg(
        F.min(F.coalesce("key", "identity")).alias("key"),
        F.max("size").alias("size"),
        F.min("kind").alias("kind"),
        F.max("opens").alias("opens"),
        F.max("expects").alias("expects"),
        F.max("error").alias("error"),
        F.flatten(F.collect_list("spans")).alias("spans"),
    )


class Opening:
    """Opens the units of some kinds in each batch; picklable, so that it reaches executors as it is. With `parts` it is
    the last round: rows go to be judged.

    `look` makes this walk's function another one than every other walk's. A unit that cannot be read is told in many
    rows, each under another name, so that they reach every part of a shuffle (`Spread.telling`):

    1. A task reads its units; half of the tasks that take its rows are done.
    2. Its executor is lost, so Spark runs the task again, and now the store does not answer.
    3. One row that says so may belong to a part that is done: nobody would see it, and what the other parts miss is a
       file that seems to be needed by nobody.
    """

    def __init__(
        self, means: WalkMeans, kinds: Sequence[FileKind], look: str, spread: Spread, parts: Parts | None = None
    ) -> None:
        self._means = means.share(spread.side_by_side)
        self._kinds = kinds
        self._look = look
        self._threads = spread.threads
        self._telling = spread.telling
        self._parts = parts

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_zip_importers()
        keep_freed_memory()
        with opener(self._means.expands, self._threads) as opened:
            for batch in batches:
                yield from self._through(batch, opened)

    def _through(self, batch: pa.RecordBatch, opened: Opener) -> Iterator[pa.RecordBatch]:
        kinds = pa.array([kind.value for kind in self._kinds])
        due = pc.and_(batch.column("opens"), pc.is_in(batch.column("kind"), value_set=kinds))
        passing = batch.filter(pc.invert(due))
        if len(passing):
            yield self._passed(as_written(passing, ROWS))
        units = batch.filter(due)
        for kind in self._kinds:
            yield from self._of_kind(kind, units.filter(pc.equal(units.column("kind"), kind.value)), opened)

    def _of_kind(self, kind: FileKind, units: pa.RecordBatch, opened: Opener) -> Iterator[pa.RecordBatch]:
        spans = merged(*spans_of(units.column("spans")))
        keys = pc.coalesce(units.column("key"), units.column("identity"))
        facts = (each.to_pylist() for each in (keys, units.column("size"), units.column("expects")))
        files = [File(kind, key, size, True, expects) for key, size, expects in zip(*facts, strict=True)]

        def open_some(numbers: Numbers, by: Numbers, failures: Failures) -> Iterator[Expanded]:
            for _, answer in opened([files[number] for number in numbers.tolist()], by.tolist(), failures):
                yield answer

        losses = Losses()
        for answer, read in opened_once(self._means, spans, len(files), open_some, losses):
            yield self._named(answer, read, len(files))
        for walk_number, (unit, problem) in losses.by_walk.items():
            first = int(self._means.axis.kept[walk_number])
            row = [None, None, kind.value, False, None, told(problem), 0, 1, [first, first + 1]]
            yield self._passed(rows_to_tell(files[unit].key, row, ROWS, self._telling))

    def _named(self, answer: Expanded, read: Spans, units: int) -> pa.RecordBatch:
        if self._parts is None:
            return named(answer, read, units)
        return parted(answer, read, self._means.axis, self._parts, self._means.folds)

    def _passed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Returns rows that no unit of this round named."""
        if self._parts is None:
            return rows
        # In order, and not merged: what two units add and a third takes away is still there.
        spans = in_order(*spans_of(rows.column("spans")))
        return to_parts(rows, spans, self._means.axis, self._parts, self._means.folds)
