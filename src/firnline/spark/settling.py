"""The end of a walk on Spark: the rows of a file meet in one task, fold into who reaches it, and it is judged there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firnline.model.spans import Numbers, SpanEntries, above_zero, numbers
from firnline.ports.engines import Territory
from firnline.ports.stores import AsCalled
from firnline.spark.telling import forget_zip_importers, told
from firnline.spark.travelling import PLACE_BITS, Parts, spans_of
from firnline.walking.axis import BY_KEPT, BY_OTHERS, BY_OWN, Axis, Reach
from firnline.walking.opening import come_too_late
from firnline.walking.verdicts import VERDICTS, verdicts

SETTLED = pa.schema(
    [
        ("walk", pa.int32()),
        ("identity", pa.string()),
        ("key", pa.string()),
        ("size", pa.int64()),
        ("kind", pa.int8()),
        ("verdict", pa.int8()),
        ("error", pa.string()),
    ]
)
SETTLED_DDL = "walk int, identity string, key string, size bigint, kind tinyint, verdict tinyint, error string"

UNREADABLE, OTHERS = len(VERDICTS), len(VERDICTS) + 1
"""Verdicts beside those of files: a unit that cannot be read, and what only other tables need."""

_LATE = told(come_too_late())
_ONCE = [("row", "min"), ("key", "min"), ("kind", "min"), ("size", "max"), ("error", "max")]


def settled(rows: DataFrame, parts: Parts, axis: Axis, territories: Sequence[Territory]) -> DataFrame:
    """Returns one row per table and file that it reaches, with the verdict on it.

    Sorting by a number costs a fraction of sorting by paths, and brings the rows of a file together as well.
    """
    together = rows.repartitionById(parts.all, F.col("part")).drop("part").sortWithinPartitions("place")
    return together.mapInArrow(Settling(axis, territories), SETTLED_DDL)


class Settling:
    """Folds and judges the rows of each file, which come one after the other.

    Rows are sorted by `place`: by table, and in a table by the path, so that all that may be one file, or a near miss
    of it, stands together. The last place of a batch may go on in the next one, so it is held back; memory holds little
    more than a batch.
    """

    def __init__(self, axis: Axis, territories: Sequence[Territory]) -> None:
        self._axis = axis
        # Real names are looked at where the folders are: executors compare what files are called.
        self._territories = [replace(each, real=AsCalled()) for each in territories]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_zip_importers()
        held: pa.RecordBatch | None = None
        for batch in batches:
            rows = batch if held is None else pa.concat_batches([held, batch])
            places = rows.column("place").to_numpy()
            cut = int(np.searchsorted(places, places[-1])) if len(places) else 0
            if cut:
                yield from self._settled(rows.slice(0, cut))
            held = rows.slice(cut)
        if held is not None and len(held):
            yield from self._settled(held)

    def _settled(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        walks = rows.column("place").to_numpy() >> PLACE_BITS
        for walk in np.unique(walks).tolist():
            first, end = np.searchsorted(walks, [walk, walk + 1]).tolist()
            yield self._of_walk(walk, rows.slice(first, end - first))

    def _of_walk(self, walk: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        names = rows.column("identity").dictionary_encode()
        files = numbers(names.indices.to_numpy(zero_copy_only=False))
        error = pc.if_else(rows.column("opens"), _LATE, rows.column("error"))
        failed = error.is_valid().to_numpy(zero_copy_only=False)
        reach = self._reach(walk, rows, files, len(names.dictionary))[files]
        reach[failed] |= BY_KEPT
        stays = ((reach > 0) & _adds(rows)) | failed
        said = {name: rows.column(name) for name in ("identity", "key", "size", "kind")}
        table = pa.table({**said, "error": error, "reach": pa.array(reach)})
        if not stays.all():
            table, files = table.filter(pa.array(stays)), files[stays]
        return self._judged(walk, _one_per_file(table, files))

    def _reach(self, walk: int, rows: pa.RecordBatch, files: Numbers, count: int) -> Reach:
        """Returns by whom each file is reached."""
        found = np.zeros(count, dtype=np.uint8)
        np.bitwise_or.at(found, files, rows.column("reach").to_numpy(zero_copy_only=False).astype(np.uint8))
        if "spans" in rows.schema.names:
            place, start, end = spans_of(rows.column("spans"))
            fold, op = (pc.fill_null(rows.column(name), 0).to_numpy(zero_copy_only=False) for name in ("fold", "op"))
            entries = SpanEntries(files[place], numbers(fold)[place], numbers(op)[place], start, end)
            alive = above_zero(count, entries)
            walks = np.full(len(alive.owner), walk, dtype=np.int64)
            np.bitwise_or.at(found, alive.owner, self._axis.reach(walks, alive.start, alive.end))
        return found

    def _judged(self, walk: int, rows: pa.Table) -> pa.RecordBatch:
        reach = rows.column("reach").to_numpy()
        own, theirs = (reach & BY_OWN) > 0, (reach & BY_OTHERS) > 0
        files = rows.append_column("needed", pa.array((reach & BY_KEPT) > 0))
        judged = verdicts(files, self._territories[walk], rows.filter(pa.array(theirs)) if theirs.any() else None)
        verdict = pc.if_else(pa.array(own), judged.column("verdict"), pa.scalar(OTHERS, pa.int8()))
        verdict = pc.if_else(rows.column("error").is_valid(), pa.scalar(UNREADABLE, pa.int8()), verdict)
        columns: dict[str, Any] = {name: rows.column(name) for name in ("identity", "key", "size", "kind", "error")}
        columns |= {"walk": pa.array(np.full(len(rows), walk, np.int32)), "verdict": verdict}
        (batch,) = pa.table({name: columns[name] for name in SETTLED.names}, SETTLED).combine_chunks().to_batches() or [
            pa.RecordBatch.from_pylist([], SETTLED)
        ]
        return batch


def _adds(rows: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tells which rows say that a file is there, and not that it is taken away."""
    if "op" not in rows.schema.names:
        return np.ones(len(rows), dtype=bool)
    adds: np.ndarray[tuple[int], np.dtype[np.bool_]] = pc.fill_null(rows.column("op"), 1).to_numpy() > 0
    return adds


def _one_per_file(rows: pa.Table, files: Numbers) -> pa.Table:
    """Returns one row per file, its bytes counted once. Most have one row as it is."""
    if len(np.unique(files)) == len(rows):
        return rows
    spelled = rows.set_column(1, "key", pc.coalesce(rows.column("key"), rows.column("identity")))
    counted = spelled.append_column("file", pa.array(files)).append_column("row", pa.array(np.arange(len(rows))))
    grouped = counted.group_by("file", use_threads=False).aggregate(_ONCE)
    firsts = rows.take(grouped.column("row_min"))
    found = {"identity": firsts.column("identity"), "reach": firsts.column("reach")}
    found |= {name: grouped.column(f"{name}_{how}") for name, how in _ONCE if name != "row"}
    return pa.table({name: found[name] for name in rows.column_names})
