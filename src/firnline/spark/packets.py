"""Rows cross Spark in packets, each a binary value of many rows: the JVM moves bytes and looks at no row.

A row that crosses by itself is taken out of a column, becomes an object of the JVM, is sorted there and goes back into
a column. For a table of a hundred thousand files that took as long as all the reading and judging.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from firnline.model.spans import Numbers

PACKETS = pa.schema([("target", pa.int32()), ("slice", pa.int32()), ("data", pa.binary())])
PACKETS_DDL = "target int, slice int, data binary"

LOST, UNITS = -2, -1
"""What a packet without files has for its slice: it tells of walks that cannot be judged, or of units that the next
round opens. Both come before all files where packets are sorted."""

SLICES = 8
"""A task judges files slice by slice, so that it holds an eighth of them at a time."""

_HELD_ROWS, _HELD_BYTES = 250_000, 32 << 20
"""So much waits in a task until it is packed: packets of few rows are all overhead."""


def packed(rows: pa.RecordBatch | pa.Table) -> bytes:
    """Returns the rows as one value, which tells their schema."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write(rows)
    return bytes(sink.getvalue())


def unpacked(data: bytes) -> pa.Table:
    """Returns the rows of a packet."""
    with pa.ipc.open_stream(data) as stream:
        return stream.read_all()


_SHORT = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


def with_short_offsets(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the batch with texts as all code here makes them: a session may be set to hand out others
    (`useLargeVarTypes`), and the batches that one task gives back must be of one kind.
    """
    fields = (field.with_type(_SHORT.get(field.type, field.type)) for field in batch.schema)
    return batch.cast(pa.schema(fields))


def packets(targets: Sequence[int], slices: Sequence[int], data: Sequence[bytes]) -> pa.RecordBatch:
    """Returns packets as they travel."""
    columns = zip((targets, slices, data), PACKETS, strict=True)
    return pa.record_batch([pa.array(values, field.type) for values, field in columns], schema=PACKETS)


def each_packet(batch: pa.RecordBatch) -> Iterator[tuple[int, bytes]]:
    """Yields the slice of each packet, and its data."""
    yield from zip(batch.column("slice").to_pylist(), batch.column("data").to_pylist(), strict=True)


class Packing:
    """Packs rows by the cell that each goes to. It waits until there are enough, whichever unit they are of."""

    def __init__(self, *, sliced: bool) -> None:
        self._sliced = sliced
        self._rows: list[pa.RecordBatch] = []
        self._cells: list[Numbers] = []
        self._held = 0
        self._bytes = 0

    def add(self, rows: pa.RecordBatch, cells: Numbers) -> Iterator[pa.RecordBatch]:
        """Takes rows, and yields packets where enough is held. A cell is a target, or one of the slices of it."""
        if not len(rows):
            return
        self._rows.append(rows)
        self._cells.append(cells)
        self._held += len(rows)
        self._bytes += rows.nbytes
        if self._held >= _HELD_ROWS or self._bytes >= _HELD_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yields all that is held."""
        if not self._rows:
            return
        rows, cells = pa.Table.from_batches(self._rows), np.concatenate(self._cells)
        self._rows, self._cells, self._held, self._bytes = [], [], 0, 0
        firsts, portions = by_number(rows, cells)
        targets, slices = (firsts // SLICES, firsts % SLICES) if self._sliced else (firsts, np.full_like(firsts, UNITS))
        yield packets(targets.tolist(), slices.tolist(), [packed(each) for each in portions])


def by_number(rows: pa.Table, of: Numbers) -> tuple[Numbers, Iterable[pa.Table]]:
    """Returns the numbers that occur, in order, and the rows of each."""
    order = np.argsort(of, kind="stable")
    ordered = of[order]
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], len(of) > 0)) + 1
    firsts = np.append(0, ends)[:-1]
    whole = rows.combine_chunks()
    placed = whole if len(firsts) == 1 else whole.take(pa.array(order))
    return ordered[firsts], [placed.slice(first, end - first) for first, end in zip(firsts, ends, strict=True)]
