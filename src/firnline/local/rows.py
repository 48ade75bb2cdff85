"""The local walk's table of rows, and its aggregation to one row per file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.local.alike import marks_of, may_be_alike
from firnline.model.files import FileKind, Root
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

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]

_KINDS = pa.array(sorted(FileKind), pa.string())


def root_rows(roots: Iterable[Root]) -> pa.Table:
    return pa.table(root_columns(roots), schema=ROWS)


def with_need(batch: pa.RecordBatch, needed: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Table:
    """Returns the rows that units named, each needed as its unit is."""
    columns = [*batch.columns, pa.array(needed), pa.nulls(len(batch), pa.int64())]
    return pa.Table.from_arrays(columns, schema=ROWS)


def one_per_file(parts: Iterable[pa.Table]) -> pa.Table:
    """Returns one row per identity: needed if any row of it is, its bytes counted once.

    What can be told of a part alone is told when it comes, while the next one is read.
    """
    marked = [(part, marks_of(part.column("identity"))) for part in parts]
    rows = pa.concat_tables([part for part, _ in marked])
    shared = may_be_alike(np.concatenate([marks for _, marks in marked]))
    if not shared.any():
        return rows
    twice, once = split(rows, pa.chunked_array([shared]))
    return pa.concat_tables([once, each_once(twice, *numbered(twice.column("identity")))])


def numbered(texts: pa.ChunkedArray) -> tuple[pa.Array, Numbers]:
    """Returns each text once, and for every row the place that its text has among them."""
    names = pc.unique(texts)
    return names, pc.index_in(texts, value_set=names).to_numpy().astype(np.int64)


def each_once(rows: pa.Table, names: pa.Array, places: Numbers) -> pa.Table:
    """Returns one row per identity, where `numbered` told which they are. Of several kinds and spellings the first in
    their order counts.

    Numbers are grouped, not texts; and the smallest of many texts is slow to find, so kinds are compared by number too,
    and spellings only where one differs from the identity.
    """
    spelled = not pc.all(pc.equal(rows.column("identity"), rows.column("key"))).as_py()
    by_number = rows.set_column(rows.column_names.index("kind"), "kind", pc.index_in(rows.column("kind"), _KINDS))
    largest = [(name, "max") for name in ("size", "opens", "needed", "expects")]
    asked = [*([("key", "min")] if spelled else []), ("kind", "min"), *largest]
    grouped = by_number.append_column("file", pa.array(places)).group_by("file").aggregate(asked)
    found = {name.removesuffix("_min").removesuffix("_max"): grouped.column(name) for name in grouped.column_names}
    identities = names.take(found["file"].combine_chunks())
    found = {"key": identities, **found, "identity": identities, "kind": _KINDS.take(found["kind"].combine_chunks())}
    return pa.table(found).select(ROWS.names).cast(ROWS)


def split(rows: pa.Table, wanted: pa.ChunkedArray) -> tuple[pa.Table, pa.Table]:
    """Returns the rows where `wanted` holds, and the others."""
    return rows.filter(wanted), rows.filter(pc.invert(wanted))


def in_batches(rows: pa.Table, most: int) -> Iterator[pa.RecordBatch]:
    """Yields the rows in batches of that many, however many pieces they lie in."""
    for start in range(0, len(rows), most):
        yield from rows.slice(start, most).combine_chunks().to_batches()
