"""The local walk's table of rows, and its aggregation to one row per file."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.model.files import Root
from firnline.ports.engines import root_columns

ROWS = pa.schema(
    [
        ("identity", pa.string()),
        ("key", pa.string()),
        ("size", pa.int64()),
        ("kind", pa.string()),
        ("opens", pa.bool_()),
        ("needed", pa.bool_()),
        ("expects", pa.int64()),
    ]
)


def root_rows(roots: Iterable[Root]) -> pa.Table:
    return pa.table(root_columns(roots), schema=ROWS)


def with_need(batch: pa.RecordBatch, needed: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Table:
    """Returns the rows that units named, each needed as its unit is."""
    columns = [*batch.columns, pa.array(needed), pa.nulls(len(batch), pa.int64())]
    return pa.Table.from_arrays(columns, schema=ROWS)


def one_per_file(rows: pa.Table) -> pa.Table:
    """Returns one row per identity: needed if any row of it is, its bytes counted once."""
    if not len(rows):
        return rows
    largest = [(name, "max") for name in ("size", "opens", "needed", "expects")]
    asked = [("key", "min"), ("kind", "min"), *largest]
    grouped = rows.group_by("identity").aggregate(asked)
    renamed = grouped.rename_columns([name.removesuffix("_min").removesuffix("_max") for name in grouped.column_names])
    return renamed.select(ROWS.names).cast(ROWS)


def split(rows: pa.Table, wanted: pa.ChunkedArray) -> tuple[pa.Table, pa.Table]:
    """Returns the rows where `wanted` holds, and the others."""
    return rows.filter(wanted), rows.filter(pc.invert(wanted))
