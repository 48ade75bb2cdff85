"""The rows of a walk on Spark: what a unit says of a file, and the spans of roots that read the unit.

Between rounds spans travel as lists, since units of the next round are read for all of them. After the last round each
row goes to the table that it is of: to one task go all rows of a table that have one path, so that everything that
decides about a file meets there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.model.files import FileKind
from firnline.model.spans import Numbers, Spans, merged, numbers
from firnline.ports.expanding import EXPECTS, Expanded, with_expectations
from firnline.spark.packets import SLICES
from firnline.walking.axis import STARTS, Axis
from firnline.walking.marks import Marks, marks_of

ROWS = pa.schema([*STARTS, ("fold", pa.int64()), ("op", pa.int8()), ("spans", pa.list_(pa.int32()))])
"""Between rounds. No key: it is the identity, as most are."""

KINDS = pa.array(sorted(FileKind), pa.string())
"""Kinds travel as numbers, in the order of their names: of several that are told of one file the first counts."""

PLAIN = pa.schema(
    [
        ("identity", pa.string()),
        ("key", pa.string()),
        ("size", pa.int64()),
        ("kind", pa.int8()),
        ("opens", pa.bool_()),
        ("walk", pa.int32()),
        ("reach", pa.int8()),
    ]
)
FOLDING = pa.schema([*PLAIN, ("fold", pa.int64()), ("op", pa.int8()), ("spans", pa.list_(pa.int32()))])
_STEM = r"^[^:]+://[^/]*"
_OF_A_SLICE = 12_500
"""So many files of a table are judged at once, where it is known how many it has."""


def spans_of(lists: pa.Array) -> tuple[Numbers, Numbers, Numbers]:
    """Returns the number of the row, start and end of each span."""
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    pairs = lists.flatten().to_numpy(zero_copy_only=False).reshape(-1, 2)
    return numbers(np.repeat(np.arange(len(lists)), counts // 2)), numbers(pairs[:, 0]), numbers(pairs[:, 1])


def lists_of(spans: Spans, owners: int) -> pa.Array:
    """Returns the spans of each owner as one flat list of starts and ends."""
    offsets = np.searchsorted(spans.owner, np.arange(owners + 1)) * 2
    flat = np.stack([spans.start, spans.end], axis=1).reshape(-1)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(flat, pa.int32()))


def start_rows(starts: pa.Table, spans: Spans) -> pa.Table:
    """Returns what a pass starts with."""
    count = len(starts)
    added = {"spans": lists_of(spans, count)}
    added |= {"fold": pa.array(np.zeros(count, np.int64)), "op": pa.array(np.ones(count, np.int8))}
    columns = {**{name: starts.column(name) for name in STARTS.names}, **added}
    return pa.table({name: columns[name] for name in ROWS.names}, schema=ROWS)


def named(answer: Expanded, spans: Spans, units: int) -> pa.RecordBatch:
    """Returns the rows that units named, each with the spans of its unit; a deeper unit that several name only once.

    Lists that follow each other name nearly the same manifests: most of the rows need not leave the executor.
    """
    rows, of = answer.rows, answer.of
    deeper = rows.column("opens").to_numpy(zero_copy_only=False)
    if not deeper.any():
        return _said(rows, lists_of(spans, units).take(pa.array(of)))
    units_named = rows.filter(pa.array(deeper))
    codes, first = _same(units_named)
    places, of_unit = spans.of(of[deeper])
    together = merged(codes[places], spans.start[of_unit], spans.end[of_unit])
    rest = np.flatnonzero(~deeper)
    once = _said(units_named.take(pa.array(first)), lists_of(together, len(first)))
    others = _said(rows.take(pa.array(rest)), lists_of(spans, units).take(pa.array(of[rest])))
    return pa.concat_batches([once, others])


def _same(units: pa.RecordBatch) -> tuple[Numbers, Numbers]:
    """Returns a number for each row, the same for rows that say the same, and the first row of each number.

    Rows of one unit that differ in spelling or size all stay: they are judged where all meet.
    """
    facts = [name for name in ("identity", "key", "size", "kind", EXPECTS, "fold", "op") if name in units.schema.names]
    table = pa.Table.from_batches([units.select(facts)]).append_column("row", pa.array(np.arange(len(units))))
    grouped = table.group_by(facts, use_threads=False).aggregate([("row", "min"), ("row", "list")])
    first, rows = (grouped.column(name).combine_chunks() for name in ("row_min", "row_list"))
    codes = np.empty(len(units), dtype=np.int64)
    codes[rows.flatten().to_numpy()] = np.repeat(np.arange(len(first)), rows.value_lengths().to_numpy())
    return codes, numbers(first.to_numpy())


def _said(rows: pa.RecordBatch, spans: pa.Array) -> pa.RecordBatch:
    columns = {**_facts(rows), "spans": spans, EXPECTS: with_expectations(rows).column(EXPECTS)}
    return pa.record_batch([columns[name] for name in ROWS.names], schema=ROWS)


def _facts(rows: pa.RecordBatch) -> dict[str, pa.Array]:
    """Returns what units say, as it travels. What takes a file away needs to say which file, and nothing of it; and a
    key that is the file's identity travels once.
    """
    same = pc.equal(rows.column("identity"), rows.column("key"))
    said = {name: rows.column(name) for name in ("identity", "key", "size", "kind", "opens")}
    said["key"] = pc.if_else(same, None, said["key"])
    if "op" not in rows.schema.names:
        return {**said, "fold": pa.array(np.zeros(len(rows), np.int64)), "op": pa.array(np.ones(len(rows), np.int8))}
    adds = pc.greater(rows.column("op"), 0)
    without = {name: pc.if_else(adds, said[name], None) for name in ("key", "size", "kind")}
    return {**said, **without, "fold": rows.column("fold"), "op": rows.column("op")}


@dataclass(frozen=True, slots=True)
class Parts:
    """Which task judges a file, and with which others: each walk has a share of all tasks and some slices of each, by
    how many files it has. Those of a small table are judged at once: each time costs as much as judging thousands.
    """

    all: int
    first: Numbers
    share: Numbers
    slices: Numbers

    @staticmethod
    def of(every: int, entries: Sequence[int]) -> Parts:
        files = numbers(entries)
        weights = np.maximum(files, 1)
        share = np.maximum(1, np.round(every * weights / weights.sum())).astype(np.int64)
        slices = np.where(files > 0, np.clip(files // share // _OF_A_SLICE, 1, SLICES), SLICES)
        return Parts(every, np.cumsum(share) - share, share, slices)

    def cells(self, walks: Numbers, paths: pa.Array) -> Numbers:
        """Returns the part that each row of a walk goes to, and the slice of it, as one number."""
        marks = spread_marks(paths)
        part = (self.first[walks] + (marks >> np.uint64(33)).astype(np.int64) % self.share[walks]) % self.all
        of_walk = (marks & np.uint64(0xFFFF)).astype(np.int64) % self.slices[walks]
        return numbers(part * SLICES + (walks + of_walk) % SLICES)


def tasks_of(units: pa.Array, tasks: int) -> Numbers:
    """Returns the task that opens each unit in the next round: all rows of a unit go to one."""
    return ((spread_marks(units) >> np.uint64(33)) % np.uint64(tasks)).astype(np.int64)


def spread_marks(texts: pa.Array) -> Marks:
    """Returns a number for each text. Neighbours differ in few bits: in these numbers all bits differ."""
    marks = marks_of(pa.chunked_array([texts]))
    for _ in range(2):
        marks = (marks ^ (marks >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return marks ^ (marks >> np.uint64(32))


def paths_of(names: pa.Array) -> pa.Array:
    """Returns the names without scheme and authority."""
    if not len(names):
        return names
    stem = "/".join(names[0].as_py().split("/")[:3])
    if pc.all(pc.starts_with(names, f"{stem}/")).as_py():
        return pc.replace_substring(names, stem, "", max_replacements=1)  # a pattern takes five times as long
    return pc.replace_substring_regex(names, _STEM, "")


def parted(answer: Expanded, spans: Spans, axis: Axis, parts: Parts, folds: bool) -> tuple[pa.RecordBatch, Numbers]:
    """Returns the rows that units of the last round named, as they go to be judged, and the cell of each."""
    places, of_unit = spans.of(answer.of)
    read = Spans(places, spans.start[of_unit], spans.end[of_unit])
    return to_parts(pa.record_batch(_facts(answer.rows)), read, axis, parts, folds)


def to_parts(
    rows: pa.RecordBatch, spans: Spans, axis: Axis, parts: Parts, folds: bool
) -> tuple[pa.RecordBatch, Numbers]:
    """Returns each row once for each walk that reads it, and the cell where it is judged."""
    walks = axis.walks(spans.start)
    begins = np.ones(len(walks), dtype=bool)
    begins[1:] = (spans.owner[1:] != spans.owner[:-1]) | (walks[1:] != walks[:-1])
    first = np.flatnonzero(begins)
    of = spans.owner[first]
    chosen = rows if np.array_equal(of, np.arange(len(rows))) else rows.take(pa.array(of))
    cells = parts.cells(walks[first], paths_of(chosen.column("identity")))
    facts = {name: chosen.column(name) for name in ("identity", "key", "size", "opens")}
    facts |= {"kind": pc.index_in(chosen.column("kind"), KINDS).cast(pa.int8())}
    facts |= {"walk": pa.array(walks[first].astype(np.int32))}
    if not folds:
        reach = np.bitwise_or.reduceat(axis.reach(walks, spans.start, spans.end), first) if len(first) else first
        return _batch({**facts, "reach": pa.array(reach.astype(np.int8))}, PLAIN), cells
    flat = pa.array(np.stack([spans.start, spans.end], axis=1).reshape(-1), pa.int32())
    ends = pa.ListArray.from_arrays(pa.array(np.append(first, len(walks)) * 2, pa.int32()), flat)
    nobody = pa.array(np.zeros(len(chosen), np.int8))
    folded = {"reach": nobody, "fold": chosen.column("fold"), "op": chosen.column("op"), "spans": ends}
    return _batch({**facts, **folded}, FOLDING), cells


def _batch(columns: dict[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([columns[name].cast(schema.field(name).type) for name in schema.names], schema=schema)


def each_unit_once(units: pa.Table) -> tuple[pa.Table, Spans]:
    """Returns each unit once, whatever rows name it, and the spans of the roots that read it, by the unit's number."""
    names = units.column("identity").combine_chunks().dictionary_encode()
    unit = numbers(names.indices.to_numpy(zero_copy_only=False))
    place, start, end = spans_of(units.column("spans").combine_chunks())
    spelled = pc.coalesce(units.column("key"), units.column("identity"))
    facts = pa.table({"unit": unit, "key": spelled, **{name: units.column(name) for name in ("size", "expects")}})
    once = facts.group_by("unit", use_threads=False).aggregate(list(_ONCE.items())).sort_by("unit")
    found = {name: once.column(f"{name}_{how}") for name, how in _ONCE.items()}
    return pa.table(found), merged(unit[place], start, end)


_ONCE = {"key": "min", "size": "max", "expects": "max"}
