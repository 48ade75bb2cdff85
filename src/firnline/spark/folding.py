"""The walk on Spark where units also take away.

Each row carries its `entries`: what units say of the file, with the spans of roots that read them. Rows of one file
meet in one aggregation for each kind of unit, as in every walk; after the last the entries fold into needed or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firnline.errors import FirnlineError
from firnline.model.files import File, Root
from firnline.model.spans import Entries, Numbers, Spans, alive, merged, numbers
from firnline.ports.engines import root_columns, root_numbers
from firnline.ports.formats import Expand, Expanded
from firnline.ports.overlap import Opener
from firnline.spark.importers import forget_zip_importers
from firnline.spark.opening import ROWS, ROWS_DDL, TELLING, Opening, names_to_tell
from firnline.spark.spread import Spread
from firnline.spark.troubles import told

_SAID = pa.struct([("fold", pa.int64()), ("op", pa.int8()), ("spans", pa.list_(pa.int32()))])
_FACTS = [field for field in ROWS if field.name != "needed"]
FOLDED = pa.schema([*_FACTS, ("entries", pa.list_(_SAID))])
_DDL = (
    "identity string, key string, size bigint, kind string, opens boolean, expects bigint, error string, "
    "entries array<struct<fold:bigint,op:tinyint,spans:array<int>>>"
)


def root_table(roots: Sequence[Root]) -> tuple[pa.Table, int]:
    """Returns the roots, one row each with the spans of its owners, and how many owners are kept."""
    owners, kept = root_numbers(roots)
    columns = root_columns(roots)
    places: dict[object, list[int]] = {}
    for place, name in enumerate(columns["identity"]):
        places.setdefault(name, []).append(place)
    firsts = [each[0] for each in places.values()]
    numbered = [owners[root.owner] for root in roots]
    spans = ([end for place in each for end in (numbered[place], numbered[place] + 1)] for each in places.values())
    said = [[{"fold": 0, "op": 1, "spans": each}] for each in spans]
    facts = {name: [columns[name][place] for place in firsts] for name in columns if name in FOLDED.names}
    nothing = [None] * len(firsts)
    return pa.table({**facts, "error": nothing, "entries": said}, schema=FOLDED), kept


def walk_folding(rows: DataFrame, expand: Expand, spread: Spread, kept: int) -> DataFrame:
    """Returns one row per file that any root needs, with the columns of every walk."""
    look = uuid4().hex
    placed = rows.repartitionById(spread.tasks, F.col("task")).drop("task")
    for kind in expand.order:
        found = placed.mapInArrow(FoldingOpening(expand, kind, look, spread.threads), _DDL)
        rows = _one_per_file(found)
        # By their names: entries come in any order, so a task that is run again would deal its rows out otherwise,
        # and one that went to a task which is done already would be lost.
        placed = rows.repartition(spread.tasks, "identity")
    return rows.mapInArrow(Folding(kept), ROWS_DDL)


def _one_per_file(rows: DataFrame) -> DataFrame:
    return rows.groupBy("identity").agg(
        F.min("key").alias("key"),
        F.max("size").alias("size"),
        F.min("kind").alias("kind"),
        F.max("opens").alias("opens"),
        F.max("expects").alias("expects"),
        F.max("error").alias("error"),
        F.flatten(F.collect_list("entries")).alias("entries"),
    )


class Said(NamedTuple):
    """The entries of some rows, one for each span: the number of the row, fold, op, start and end."""

    row: Numbers
    fold: Numbers
    op: Numbers
    start: Numbers
    end: Numbers


def said_of(entries: pa.ListArray) -> Said:
    """Returns the entries end to end."""
    row_of = np.repeat(np.arange(len(entries)), pc.list_value_length(entries).to_numpy(zero_copy_only=False))
    structs = entries.flatten()
    spans = structs.field("spans")
    pairs = spans.flatten().to_numpy(zero_copy_only=False).reshape(-1, 2)
    entry = np.repeat(np.arange(len(spans)), pc.list_value_length(spans).to_numpy(zero_copy_only=False) // 2)
    fold, op = (numbers(structs.field(name).to_numpy(zero_copy_only=False))[entry] for name in ("fold", "op"))
    return Said(numbers(row_of)[entry], fold, op, numbers(pairs[:, 0]), numbers(pairs[:, 1]))


class FoldingOpening(Opening):
    """Opens units whose rows say of which roots they are, and whether they add or take away."""

    def _through(self, batch: pa.RecordBatch, opened: Opener) -> Iterator[pa.RecordBatch]:
        due = pc.and_(batch.column("opens"), pc.equal(batch.column("kind"), self._kind.value))
        passing = batch.filter(pc.invert(due))
        if len(passing):
            yield _as_written(passing)
        units = batch.filter(due)
        said = said_of(units.column("entries"))
        spans = merged(said.row, said.start, said.end)
        facts = (units.column(name).to_pylist() for name in ("key", "size", "expects"))
        files = [File(self._kind, key, size, True, expects) for key, size, expects in zip(*facts, strict=True)]
        count = 0
        try:
            for portion, answer in opened(files):
                yield _spanned(Expanded(answer.rows, answer.of + count), spans, len(files))
                count += len(portion)
        except FirnlineError as problem:
            yield self._unreadable(files[count].key, problem)

    def _unreadable(self, key: str, problem: FirnlineError) -> pa.RecordBatch:
        row: list[object] = [key, None, self._kind.value, False, None, told(problem), []]
        columns = [names_to_tell(key), *([value] * TELLING for value in row)]
        return pa.record_batch(
            [pa.array(each, field.type) for each, field in zip(columns, FOLDED, strict=True)], FOLDED
        )


def _as_written(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the rows with the very types that we write: Spark names the items of lists otherwise."""
    return pa.record_batch([rows.column(field.name).cast(field.type) for field in FOLDED], schema=FOLDED)


def _spanned(answer: Expanded, spans: Spans, units: int) -> pa.RecordBatch:
    """Returns the rows that units named, each with the spans of its unit; a deeper unit that several name only once."""
    rows, of = answer.rows, answer.of
    deeper = rows.column("opens").to_numpy(zero_copy_only=False)
    if not deeper.any():
        return _with_entries(rows, _lists(spans, units).take(pa.array(of)))
    names = rows.filter(pa.array(deeper)).column("identity").dictionary_encode()
    places, chosen = spans.of(of[deeper])
    codes = numbers(names.indices.to_numpy(zero_copy_only=False))
    together = merged(codes[places], spans.start[chosen], spans.end[chosen])
    first = np.flatnonzero(deeper)[np.unique(codes, return_index=True)[1]]
    rest = np.flatnonzero(~deeper)
    once = _with_entries(rows.take(pa.array(first)), _lists(together, len(first)))
    others = _with_entries(rows.take(pa.array(rest)), _lists(spans, units).take(pa.array(of[rest])))
    return pa.concat_batches([once, others])


def _lists(spans: Spans, owners: int) -> pa.Array:
    """Returns the spans of each owner as one flat list of starts and ends."""
    offsets = np.searchsorted(spans.owner, np.arange(owners + 1)) * 2
    flat = np.stack([spans.start, spans.end], axis=1).reshape(-1)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(flat, pa.int32()))


def _with_entries(rows: pa.RecordBatch, spans: pa.Array) -> pa.RecordBatch:
    count = len(rows)
    said = pa.StructArray.from_arrays([rows.column("fold"), rows.column("op"), spans], fields=list(_SAID))
    entries = pa.ListArray.from_arrays(pa.array(np.arange(count + 1), pa.int32()), said)
    facts = [rows.column(name) for name in ("identity", "key", "size", "kind", "opens")]
    nothing = [pa.nulls(count, kind) for kind in (pa.int64(), pa.string())]
    return pa.record_batch([*facts, *nothing, entries], schema=FOLDED)


class Folding:
    """Folds what was said of each file: one row for each that a root needs. What could not be read stays as it is."""

    def __init__(self, kept: int) -> None:
        self._kept = kept

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_zip_importers()
        for batch in batches:
            said = said_of(batch.column("entries"))
            found = alive(len(batch), Entries(*said), self._kept)
            failed = batch.column("error").is_valid()
            needed = pc.or_(pa.array(found.needed), failed)
            columns = {**{name: batch.column(name) for name in batch.schema.names}, "needed": needed}
            rows = pa.record_batch([columns[field.name] for field in ROWS], schema=ROWS)
            yield rows.filter(pc.or_(pa.array(found.reached), failed))
