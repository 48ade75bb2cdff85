"""The walk on Spark where units also take away: what was said of each file folds into needed or not.

Each row says one thing of one file: that a unit names it or takes it away, with the spans of roots that read the unit.
All kinds of units but the last are roots, so two rounds open everything. Then the rows of a file meet in one task, one
after the other, and fold into needed or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firnline.errors import FirnlineError, UnreadableMetadata
from firnline.model.files import File, FileKind, Root
from firnline.model.spans import Numbers, SpanEntries, Spans, alive, merged, numbers
from firnline.ports.engines import root_columns, root_numbers
from firnline.ports.expanding import Expand, Expanded, Opener
from firnline.spark.opening import ROWS, ROWS_DDL, Opening, forget_zip_importers, rows_to_tell, told
from firnline.spark.pipeline import dealt
from firnline.spark.spread import Spread

FOLDED = pa.schema(
    [
        *(field for field in ROWS if field.name != "needed"),
        ("fold", pa.int64()),
        ("op", pa.int8()),
        ("spans", pa.list_(pa.int32())),
    ]
)
"""What a unit says of a file. No key: it is the identity."""

_LATE = told(UnreadableMetadata("a unit was named by another one that it should come before", hint="this is a bug"))
_ONCE = [("key", "min"), ("kind", "min"), *((name, "max") for name in ("size", "opens", "needed", "expects", "error"))]


def spans_of(lists: pa.Array) -> tuple[Numbers, Numbers, Numbers]:
    """Returns the number of the row, start and end of each span."""
    counts = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    pairs = lists.flatten().to_numpy(zero_copy_only=False).reshape(-1, 2)
    return numbers(np.repeat(np.arange(len(lists)), counts // 2)), numbers(pairs[:, 0]), numbers(pairs[:, 1])


class Settling:
    """Folds the rows of each file, which come one after the other: a row for each file that a root needs.

    Rows are sorted by `place`, which follows from the file. The last place of a batch may go on in the next one, so it
    is held back; memory holds little more than a batch.
    """

    def __init__(self, kept: int) -> None:
        self._kept = kept

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_zip_importers()
        held: pa.RecordBatch | None = None
        for batch in batches:
            rows = batch if held is None else pa.concat_batches([held, batch])
            places = rows.column("place").to_numpy()
            cut = int(np.searchsorted(places, places[-1])) if len(places) else 0
            if cut:
                yield self._settled(rows.slice(0, cut))
            held = rows.slice(cut)
        if held is not None and len(held):
            yield self._settled(held)

    def _settled(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        names = rows.column("identity").dictionary_encode()
        files = numbers(names.indices.to_numpy(zero_copy_only=False))
        place, start, end = spans_of(rows.column("spans"))
        fold, op = (numbers(rows.column(name).to_numpy(zero_copy_only=False)) for name in ("fold", "op"))
        found = alive(len(names.dictionary), SpanEntries(files[place], fold[place], op[place], start, end), self._kept)
        error = pc.if_else(rows.column("opens"), _LATE, rows.column("error"))
        failed = error.is_valid().to_numpy(zero_copy_only=False)
        stays = pa.array((found.reached[files] & (op > 0)) | failed)
        said = {
            **{name: rows.column(name) for name in ROWS.names if name != "needed"},
            "key": pc.coalesce(rows.column("key"), rows.column("identity")),
            "needed": pa.array(found.needed[files] | failed),
            "error": error,
        }
        return _one_per_file(pa.record_batch([said[name] for name in ROWS.names], schema=ROWS).filter(stays))


def _one_per_file(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns one row per identity: needed if any row of it is, its bytes counted once. Most have one row as it is."""
    if len(pc.unique(rows.column("identity"))) == len(rows):
        return rows
    grouped = pa.Table.from_batches([rows]).group_by("identity", use_threads=False).aggregate(_ONCE)
    named = grouped.rename_columns([name.removesuffix("_min").removesuffix("_max") for name in grouped.column_names])
    (batch,) = named.select(ROWS.names).combine_chunks().to_batches()
    return pa.record_batch(batch.columns, schema=ROWS)


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
