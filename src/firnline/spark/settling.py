"""The end of a walk where units also take away: what was said of each file folds into needed or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import UnreadableMetadata
from firnline.model.spans import Entries, Numbers, alive, numbers
from firnline.spark.importers import forget_zip_importers
from firnline.spark.opening import ROWS
from firnline.spark.troubles import told

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
        found = alive(len(names.dictionary), Entries(files[place], fold[place], op[place], start, end), self._kept)
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
