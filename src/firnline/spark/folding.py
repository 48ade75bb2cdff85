"""The walk on Spark where units also take away.

Each row says one thing of one file: that a unit names it or takes it away, with the spans of roots that read the unit.
All kinds of units but the last are roots, so two rounds open everything. Then the rows of a file meet in one task, one
after the other, and fold into needed or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firnline.errors import FirnlineError
from firnline.model.files import File, FileKind, Root
from firnline.model.spans import Spans, merged, numbers
from firnline.ports.engines import root_columns, root_numbers
from firnline.ports.expanding import Expand, Expanded
from firnline.ports.overlap import Opener
from firnline.spark.opening import ROWS_DDL, Opening, rows_to_tell
from firnline.spark.pipeline import dealt
from firnline.spark.settling import FOLDED, Settling, spans_of
from firnline.spark.spread import Spread
from firnline.spark.troubles import told

_DDL = (
    "identity string, key string, size bigint, kind string, opens boolean, expects bigint, error string, "
    "fold bigint, op tinyint, spans array<int>"
)

_OF_ONE_FILE = ("fold", "op")
"""What tells the rows of one file apart."""


def root_table(roots: Sequence[Root]) -> tuple[pa.Table, int]:
    """Returns the roots, one row each with the spans of its owners, and how many owners are kept."""
    owners, kept = root_numbers(roots)
    columns = root_columns(roots)
    places: dict[object, list[int]] = {}
    for place, name in enumerate(columns["identity"]):
        places.setdefault(name, []).append(place)
    firsts = [each[0] for each in places.values()]
    numbered = [owners[root.owner] for root in roots]
    spans = [[end for place in each for end in (numbered[place], numbered[place] + 1)] for each in places.values()]
    facts = {name: [columns[name][place] for place in firsts] for name in columns if name in FOLDED.names}
    count = len(firsts)
    said = {"error": [None] * count, "fold": [0] * count, "op": [1] * count, "spans": spans}
    return pa.table({**facts, **said}, schema=FOLDED), kept


def walk_folding(rows: DataFrame, expand: Expand, spread: Spread, kept: int) -> DataFrame:
    """Returns one row per file that any root needs, with the columns of every walk."""
    look = uuid4().hex
    *roots, last = expand.order
    placed = rows.repartitionById(spread.tasks, F.col("task")).drop("task")
    found = placed.mapInArrow(FoldingOpening(expand, tuple(roots), look, spread), _DDL)
    placed = dealt(found, spread.tasks, _together, _OF_ONE_FILE)
    found = placed.mapInArrow(FoldingOpening(expand, (last,), look, spread), _DDL)
    # Sorting by a number costs a fraction of sorting by paths, and brings the rows of a file together as well.
    near = found.withColumn("place", F.xxhash64("identity")).repartition("place").sortWithinPartitions("place")
    return near.mapInArrow(Settling(kept), ROWS_DDL)


def _together(rows: DataFrame, *by: str) -> DataFrame:
    """Returns the rows that say the same of one file as one, with the spans of all."""
    return rows.groupBy(*by, *_OF_ONE_FILE).agg(
        F.min("key").alias("key"),
        F.max("size").alias("size"),
        F.min("kind").alias("kind"),
        F.max("opens").alias("opens"),
        F.max("expects").alias("expects"),
        F.max("error").alias("error"),
        F.flatten(F.collect_list("spans")).alias("spans"),
    )


class FoldingOpening(Opening):
    """Opens units whose rows say of which roots they are, and whether they add or take away."""

    def __init__(self, expand: Expand, kinds: Sequence[FileKind], look: str, spread: Spread) -> None:
        super().__init__(expand, kinds[-1], look, spread)
        self._kinds = kinds

    def _through(self, batch: pa.RecordBatch, opened: Opener) -> Iterator[pa.RecordBatch]:
        kinds = pa.array([kind.value for kind in self._kinds])
        due = pc.and_(batch.column("opens"), pc.is_in(batch.column("kind"), value_set=kinds))
        passing = batch.filter(pc.invert(due))
        if len(passing):
            yield _as_written(passing)
        units = batch.filter(due)
        for kind in self._kinds:
            yield from self._of_kind(kind, units.filter(pc.equal(units.column("kind"), kind.value)), opened)

    def _of_kind(self, kind: FileKind, units: pa.RecordBatch, opened: Opener) -> Iterator[pa.RecordBatch]:
        spans = merged(*spans_of(units.column("spans")))
        keys = pc.coalesce(units.column("key"), units.column("identity"))
        facts = (each.to_pylist() for each in (keys, units.column("size"), units.column("expects")))
        files = [File(kind, key, size, True, expects) for key, size, expects in zip(*facts, strict=True)]
        waiting = set(range(len(files)))
        try:
            for numbers_of, answer in opened(files):
                yield _spanned(answer, spans, len(files))
                waiting.difference_update(numbers_of)
        except FirnlineError as problem:
            key = files[min(waiting)].key
            row: list[object] = [key, None, kind.value, False, None, told(problem), 0, 1, []]
            yield rows_to_tell(key, row, FOLDED, self._telling)


def _as_written(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the rows with the very types that we write: Spark names the items of lists otherwise."""
    return pa.record_batch([rows.column(field.name).cast(field.type) for field in FOLDED], schema=FOLDED)


def _spanned(answer: Expanded, spans: Spans, units: int) -> pa.RecordBatch:
    """Returns the rows that units named, each with the spans of its unit; a deeper unit that several name only once."""
    rows, of = answer.rows, answer.of
    deeper = rows.column("opens").to_numpy(zero_copy_only=False)
    if not deeper.any():
        return _written(rows, _lists(spans, units).take(pa.array(of)))
    names = rows.filter(pa.array(deeper)).column("identity").dictionary_encode()
    places, chosen = spans.of(of[deeper])
    codes = numbers(names.indices.to_numpy(zero_copy_only=False))
    together = merged(codes[places], spans.start[chosen], spans.end[chosen])
    first = np.flatnonzero(deeper)[np.unique(codes, return_index=True)[1]]
    rest = np.flatnonzero(~deeper)
    once = _written(rows.take(pa.array(first)), _lists(together, len(first)))
    others = _written(rows.take(pa.array(rest)), _lists(spans, units).take(pa.array(of[rest])))
    return pa.concat_batches([once, others])


def _lists(spans: Spans, owners: int) -> pa.Array:
    """Returns the spans of each owner as one flat list of starts and ends."""
    offsets = np.searchsorted(spans.owner, np.arange(owners + 1)) * 2
    flat = np.stack([spans.start, spans.end], axis=1).reshape(-1)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(flat, pa.int32()))


def _written(rows: pa.RecordBatch, spans: pa.Array) -> pa.RecordBatch:
    """Returns the rows as they travel. What takes a file away needs to say which file, and nothing of it; and a key
    that is the file's identity, as most are, travels once.
    """
    adds = pc.greater(rows.column("op"), 0)
    said = {name: pc.if_else(adds, rows.column(name), None) for name in ("key", "size", "kind")}
    said["key"] = pc.if_else(pc.equal(rows.column("identity"), rows.column("key")), None, said["key"])
    nothing = {name: pa.nulls(len(rows), FOLDED.field(name).type) for name in ("expects", "error")}
    columns = {**{name: rows.column(name) for name in ("identity", "opens", "fold", "op")}, **said, **nothing}
    return pa.record_batch([{**columns, "spans": spans}[name] for name in FOLDED.names], schema=FOLDED)
