"""The local walk's table of rows, aggregated to one row per file; equal texts are found by numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.model.files import FileKind, Root
from firnline.ports.engines import root_columns

Marks = np.ndarray[tuple[int], np.dtype[np.uint64]]

_WORD = 8
_TAIL = 64
"""Of each text so many bytes at its end count, where names differ. Texts that are alike in them are compared whole."""
_SPREAD = np.cumprod(np.full(1 + _TAIL // _WORD, 0x9E3779B97F4A7C15, dtype=np.uint64))
"""What the length and each word are multiplied with."""


def marks_of(texts: pa.ChunkedArray) -> Marks:
    """Returns a number for each text, which nothing but its own bytes decide: equal texts have equal marks."""
    plain = texts.cast(pa.string())
    plain = plain.fill_null("") if plain.null_count else plain
    return np.concatenate([np.zeros(0, dtype=np.uint64), *(_marks(chunk) for chunk in plain.chunks)])


def may_be_alike(marks: Marks) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Returns which texts may occur more than once: one whose mark is the only one of its kind does not. Where many do
    it is not worth finding out which: then all may.
    """
    ordered = np.sort(marks)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice) > len(marks) // 2:
        return np.ones(len(marks), dtype=bool)
    return np.isin(marks, twice) if len(twice) else np.zeros(len(marks), dtype=bool)


def _marks(texts: pa.Array) -> Marks:
    if not len(texts):
        return np.zeros(0, dtype=np.uint64)
    _, places, data = texts.buffers()
    bounds = np.frombuffer(places, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    starts, ends = bounds[:-1], bounds[1:]
    sizes = ends - starts
    if sizes.min() < _WORD:  # read as a word, a shorter text would count with its neighbour's bytes
        padded = [text.encode("utf-8", "surrogatepass").ljust(_WORD, b"\0") for text in texts.to_pylist()]
        return _marks(pa.array(padded, pa.binary()))
    marks: Marks = sizes.astype(np.uint64) * _SPREAD[0] + _tails(data, starts, ends) @ _SPREAD[1:]
    return marks


def _tails(data: pa.Buffer, starts: Any, ends: Any) -> Any:
    """Returns the last words of each text. What else is in a chunk does not count: of a text that is shorter than all
    the words, its first one stands for those that would lie before it.
    """
    if (ends - starts).min() >= _TAIL:
        tails: Any = np.ndarray(len(data) - _TAIL + 1, dtype=f"V{_TAIL}", buffer=data, strides=(1,))
        return tails[ends - _TAIL].view("<u8").reshape(len(ends), -1)
    words: Any = np.ndarray(len(data) - _WORD + 1, dtype="<u8", buffer=data, strides=(1,))
    return np.stack([words[np.maximum(ends - back, starts)] for back in range(_TAIL, 0, -_WORD)], axis=1)


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
