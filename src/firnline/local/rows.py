"""The local walk's table of rows, aggregated to one row per file; equal texts are found by numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.model.files import FileKind, Root, Tally, Totals
from firnline.ports.engines import root_columns
from firnline.ports.expanding import with_expectations
from firnline.walking.arrow import column_of
from firnline.walking.marks import Marks, marks_of, may_be_alike

_COMPARED = 32_768
"""So many pairs of texts are compared at a time: their copies stay in the processor's cache."""

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
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]

_KINDS = pa.array(sorted(FileKind), pa.string())
_NOTHING = np.iinfo(np.int64).min


def root_rows(roots: Iterable[Root]) -> pa.Table:
    return pa.table(root_columns(roots), schema=ROWS)


def with_need(batch: pa.RecordBatch, needed: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Table:
    """Returns the rows that units named, each needed as its unit is."""
    whole = with_expectations(batch).append_column("needed", column_of(needed))
    return pa.Table.from_batches([whole.select(ROWS.names)]).cast(ROWS)


def one_per_file(parts: Iterable[pa.Table]) -> pa.Table:
    """Returns one row per identity: needed if any row of it is, its bytes counted once.

    What can be told of a part alone is told when it comes, while the next one is read.
    """
    marked = [(part, marks_of(part.column("identity"))) for part in parts]
    rows, marks = pa.concat_tables([part for part, _ in marked]), np.concatenate([marks for _, marks in marked])
    shared = may_be_alike(marks)
    if not shared.any():
        return rows
    twice, once = split(rows, pa.chunked_array([shared]))
    files, _ = numbered(twice.column("identity"), marks[shared])
    return pa.concat_tables([once, each_once(twice, files)])


def numbered(texts: pa.ChunkedArray, marks: Marks) -> tuple[Numbers, int]:
    """Returns a number for each row, one for all rows of a text, and how many texts there are.

    Marks are sorted, not texts. Then each text is compared whole with another one of its mark.
    """
    order = np.argsort(marks)
    ordered = marks[order]
    begins = np.ones(len(marks), dtype=bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    numbers = np.empty(len(marks), dtype=np.int64)
    numbers[order] = np.cumsum(begins) - 1
    if _equal(texts, *_pairs(numbers)).all():
        return numbers, int(begins.sum())
    names = pc.unique(texts)
    return pc.index_in(texts, value_set=names).to_numpy().astype(np.int64), len(names)


def _pairs(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """Returns the place of each row but the last ones of their number, and beside it that of the last one."""
    places = np.arange(len(numbers))
    last = np.empty(numbers.max(initial=-1) + 1, dtype=np.int64)
    last[numbers] = places
    theirs = last[numbers]
    earlier = np.flatnonzero(theirs != places)
    return earlier, theirs[earlier]


def _equal(texts: pa.ChunkedArray, some: Numbers, others: Numbers) -> Flags:
    """Tells of each pair of rows whether their texts are equal. Nothing is equal to no text."""
    if not len(some):
        return np.zeros(0, dtype=bool)
    # Offsets of 32 bits would end at 2 GiB of texts.
    whole = texts.cast(pa.large_string()).combine_chunks()
    pairs = (
        pc.equal(*(whole.take(column_of(each[start : start + _COMPARED])) for each in (some, others)))
        for start in range(0, len(some), _COMPARED)
    )
    return np.concatenate([each.fill_null(False).to_numpy(zero_copy_only=False) for each in pairs])


def each_once(rows: pa.Table, numbers: Numbers) -> pa.Table:
    """Returns one row per file, where `numbered` told which they are. Of several kinds and spellings the first in their
    order counts.

    Nearly always all rows of a file say the same, and any of them does. Only those that do not are grouped.
    """
    earlier, last = _pairs(numbers)
    stays = np.ones(len(rows), dtype=bool)
    stays[earlier] = False
    unlike = earlier[_differ(rows, earlier, last)]
    if not len(unlike):
        return rows.filter(column_of(stays))
    mixed = np.isin(numbers, numbers[unlike])
    return pa.concat_tables(
        [rows.filter(column_of(stays & ~mixed)), _grouped(rows.filter(column_of(mixed)), numbers[mixed])]
    )


def _differ(rows: pa.Table, some: Numbers, others: Numbers) -> Flags:
    """Tells of each pair of rows of one file whether they say different things of it."""
    found = np.zeros(len(some), dtype=bool)
    for fact in _facts(rows):
        found |= fact[some] != fact[others]
    if _spelled(rows):
        found |= ~_equal(rows.column("key"), some, others)
    return found


def _facts(rows: pa.Table) -> Iterator[np.ndarray[tuple[int], Any]]:
    """Yields the columns as numbers, all but the names; where values may be missing, also which are."""
    by_number = {"kind": pc.index_in(rows.column("kind"), _KINDS)}
    for name in ("kind", "size", "opens", "needed", "expects"):
        values = by_number.get(name, rows.column(name))
        if values.null_count:
            yield values.is_valid().to_numpy()
        if values.null_count < len(values):
            yield pc.fill_null(values, False if name in ("opens", "needed") else 0).to_numpy()


def _grouped(rows: pa.Table, numbers: Numbers) -> pa.Table:
    """Returns one row per file. Arrow's own grouping would load its engine, which takes longer than a small plan."""
    there = np.zeros(numbers.max(initial=-1) + 1, dtype=bool)
    there[numbers] = True
    files, count = (np.cumsum(there) - 1)[numbers], int(there.sum())
    last = np.empty(count, dtype=np.int64)
    last[files] = np.arange(len(rows))
    found = {name: _largest(rows.column(name), files, count) for name in ("size", "opens", "needed", "expects")}
    found["identity"] = rows.column("identity").take(column_of(last))
    found["key"] = _first_text(rows.column("key"), files, count) if _spelled(rows) else found["identity"]
    kinds = _largest(pc.negate(pc.index_in(rows.column("kind"), _KINDS)), files, count)
    found["kind"] = _KINDS.take(pc.negate(kinds))
    return pa.table(found).select(ROWS.names).cast(ROWS)


def _largest(values: pa.ChunkedArray, files: Numbers, count: int) -> pa.Array:
    """Returns the largest value of each file; none where no row of it has one."""
    found = np.full(count, _NOTHING)
    np.maximum.at(found, files, pc.fill_null(values.cast(pa.int64()), _NOTHING).to_numpy())
    return pa.array(found, mask=found == _NOTHING).cast(values.type)


def _first_text(texts: pa.ChunkedArray, files: Numbers, count: int) -> pa.ChunkedArray:
    """Returns the first text of each file, in the order of texts."""
    order = pc.sort_indices(texts).to_numpy()
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    found = np.full(count, len(order))
    np.minimum.at(found, files, places)
    return texts.take(column_of(order[found]))


def totals_of(rows: pa.Table) -> Totals:
    """Returns how many files of each kind there are, and their bytes."""
    kinds = pc.index_in(rows.column("kind"), _KINDS).to_numpy()
    sizes = np.zeros(len(_KINDS), dtype=np.int64)
    np.add.at(sizes, kinds, pc.fill_null(rows.column("size"), 0).to_numpy())
    counts = np.bincount(kinds, minlength=len(_KINDS))
    tallies = zip(_KINDS.to_pylist(), counts.tolist(), sizes.tolist(), strict=True)
    return Totals.of((FileKind(kind), Tally(count, size)) for kind, count, size in tallies if count)


def _spelled(rows: pa.Table) -> bool:
    """Tells whether any key differs from its identity."""
    return not pc.all(pc.equal(rows.column("identity"), rows.column("key"))).as_py()


def split(rows: pa.Table, wanted: pa.ChunkedArray) -> tuple[pa.Table, pa.Table]:
    """Returns the rows where `wanted` holds, and the others."""
    return rows.filter(wanted), rows.filter(pc.invert(wanted))


def in_batches(rows: pa.Table, most: int) -> Iterator[pa.RecordBatch]:
    """Yields the rows in batches of that many, however many pieces they lie in."""
    for start in range(0, len(rows), most):
        yield from rows.slice(start, most).combine_chunks().to_batches()
