"""The rounds of a walk on Spark: in each, executors open the units of some kinds and hand on what these name.

All rows of a unit go to one task, so each is opened once, however many tables read it; what is no unit of a later round
goes to the part that judges it and passes the rounds between unopened. The lineage is one chain, and nothing is cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from firnline.memory import keep_freed_memory
from firnline.model.files import File, FileKind
from firnline.model.spans import Numbers, Spans, in_order
from firnline.ports.expanding import Expanded, Failures, Opener, opener
from firnline.spark.executors.beginning import begin_task
from firnline.spark.packets import LOST, PACKETS, PACKETS_DDL, UNITS, Packing, each_packet, packets, unpacked
from firnline.spark.spread import Spread, placed
from firnline.spark.telling import lost_walks, told, told_of
from firnline.spark.travelling import Parts, each_unit_once, named, parted, spans_of, start_rows, tasks_of, to_parts
from firnline.walking.axis import Pass, WalkMeans
from firnline.walking.opening import Losses, opened_once


def walk(session: SparkSession, begun: Pass, spread: Spread, parts: Parts) -> DataFrame:
    """Returns packets of the rows that units of all kinds say, each with the part that judges it.

    Every walk looks for itself: a session hands out what it holds in memory of any plan that is equal, so an earlier
    walk from the same roots would answer for a unit that is gone by now.
    """
    look = uuid4().hex
    starting = Packing(sliced=False)
    starts = start_rows(begun.starts, begun.spans).combine_chunks().to_batches()
    dealt = (starting.add(each, placed(len(each), spread.tasks)) for each in starts)
    going = session.createDataFrame(pa.Table.from_batches([*chain.from_iterable(dealt), *starting.rest()], PACKETS))
    rounds = _rounds(begun.means)
    for number in range(len(rounds)):
        opening = Opening(begun.means, rounds[number:], look, spread, parts)
        due = going.repartitionById(spread.tasks, F.pmod("target", F.lit(spread.tasks)))
        going = due.mapInArrow(opening, PACKETS_DDL)
    return going


def _rounds(means: WalkMeans) -> list[tuple[FileKind, ...]]:
    """Returns the kinds that are opened in each round. Where units fold, all kinds but the last are roots: they can be
    opened at once.
    """
    order = means.order
    return [order[:-1], order[-1:]] if means.folds else [(kind,) for kind in order]


class Opening:
    """Opens the units of the first of some rounds; picklable, so that it reaches executors as it is.

    `look` makes this walk's function another one than every other walk's. That a unit cannot be read is told to every
    task of the next step, and not to one:

    1. A task reads its units; half of the tasks that take its rows are done.
    2. Its executor is lost, so Spark runs the task again, and now the store does not answer.
    3. One packet that says so may go to a task that is done: nobody would see it, and what the other tasks miss is a
       file that seems to be needed by nobody.
    """

    def __init__(
        self, means: WalkMeans, rounds: Sequence[tuple[FileKind, ...]], look: str, spread: Spread, parts: Parts
    ) -> None:
        self._means = means.share(spread.paces)
        self._kinds, *later = rounds
        self._later = tuple(kind.value for kinds in later for kind in kinds)
        self._look = look
        self._threads = spread.threads
        self._tasks = spread.tasks
        self._parts = parts

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        keep_freed_memory()
        units: list[pa.Table] = []
        lost: dict[int, str] = {}
        for batch in batches:
            passing = batch.filter(pc.greater_equal(batch.column("slice"), 0))
            if len(passing):
                yield passing.cast(PACKETS)
            for slice_, data in each_packet(batch.filter(pc.less(batch.column("slice"), 0))):
                if slice_ == UNITS:
                    units.append(unpacked(data))
                else:
                    lost |= lost_walks(data)
        if units:
            yield from self._opened(pa.concat_tables(units), lost)
        if lost:
            everyone = range(self._tasks if self._later else self._parts.all)
            yield packets(everyone, [LOST] * len(everyone), [told_of(lost)] * len(everyone))

    def _opened(self, units: pa.Table, lost: dict[int, str]) -> Iterator[pa.RecordBatch]:
        """Yields what the units name; walks that cannot be judged are added to those that are lost."""
        leaving = _Leaving(self._means, self._later, self._tasks, self._parts)
        kinds = pa.array([kind.value for kind in self._kinds])
        due = pc.and_(units.column("opens"), pc.is_in(units.column("kind"), value_set=kinds))
        for passing in units.filter(pc.invert(due)).combine_chunks().to_batches():
            yield from leaving.rows(passing)
        units = units.filter(due)
        with opener(self._means.expands, self._threads) as opened:
            for kind in self._kinds:
                of_kind = units.filter(pc.equal(units.column("kind"), kind.value))
                yield from self._of_kind(kind, of_kind, opened, leaving, lost)
        yield from leaving.rest()

    def _of_kind(
        self, kind: FileKind, rows: pa.Table, opened: Opener, leaving: _Leaving, lost: dict[int, str]
    ) -> Iterator[pa.RecordBatch]:
        units, spans = each_unit_once(rows)
        facts = (units.column(name).to_pylist() for name in ("key", "size", "expects"))
        files = [File(kind, key, size, True, expects) for key, size, expects in zip(*facts, strict=True)]

        def open_some(numbers: Numbers, by: Numbers, failures: Failures) -> Iterator[Expanded]:
            for _, answer in opened([files[number] for number in numbers.tolist()], by.tolist(), failures):
                yield answer

        losses = Losses()
        for answer, read in opened_once(self._means, spans, len(files), open_some, losses):
            yield from leaving.answer(answer, read, len(files))
        for walk_number, (_, problem) in losses.by_walk.items():
            lost.setdefault(walk_number, told(problem))


class _Leaving:
    """What leaves a task: units to the tasks of the next round, all else to the parts where files are judged."""

    def __init__(self, means: WalkMeans, later: Sequence[str], tasks: int, parts: Parts) -> None:
        self._axis, self._folds = means.axis, means.folds
        self._later = pa.array(later, pa.string())
        self._tasks, self._parts = tasks, parts
        self._units, self._files = Packing(sliced=False), Packing(sliced=True)

    def answer(self, answer: Expanded, read: Spans, units: int) -> Iterator[pa.RecordBatch]:
        """Takes what some of so many units name, with the spans that they are read for."""
        if len(self._later):
            yield from self.rows(named(answer, read, units))
        else:
            yield from self._files.add(*parted(answer, read, self._axis, self._parts, self._folds))

    def rows(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Takes rows with their spans. A unit that no later round opens goes to be judged as it is, and ends its walk
        there.
        """
        later = pc.and_(rows.column("opens"), pc.is_in(rows.column("kind"), value_set=self._later))
        units = rows.filter(later)
        yield from self._units.add(units, tasks_of(units.column("identity"), self._tasks))
        others = rows.filter(pc.invert(later))
        # In order, and not merged: what two units add and a third takes away is still there.
        spans = in_order(*spans_of(others.column("spans")))
        yield from self._files.add(*to_parts(others, spans, self._axis, self._parts, self._folds))

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yields what was too little to be packed."""
        yield from self._units.rest()
        yield from self._files.rest()
