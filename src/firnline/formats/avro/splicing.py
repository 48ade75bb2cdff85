"""An Avro file with some values replaced and every other byte of its records as its writer wrote it.

Decoding and encoding anew would lose what a reader does not know: the order and blocks of maps, fields of later
versions, ways to write a number. So places are found as for decoding, and bytes are put in there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from firnline.formats.avro.codecs import MAX_BYTES, Blocks
from firnline.formats.avro.decoding import Cells
from firnline.formats.avro.engine import Way
from firnline.formats.avro.laying import lay_open

Rewrite = Callable[[bytes, int], bytes]
"""Returns what stands in the place of a value, both as Avro encodes it, in the record of that number; 0 is the first.
"""


class _Cut(NamedTuple):
    start: int
    end: int
    rewrite: Rewrite
    record: int


def splice(data: bytes, rewrites: Mapping[str, Rewrite], *, way: Way = "auto", max_bytes: int = MAX_BYTES) -> bytes:
    """Returns the file with the values of some fields, by their dotted names, as they are rewritten. A field that the
    file does not have, and a null, has no value. The header, with schema and codec, stays as it is.

    Raises CorruptAvro as `decode` does.
    """
    laid = lay_open(data, tuple(rewrites), way, max_bytes)
    return laid.written(_spliced(laid.blocks, _cuts(laid.places, laid.lengths, list(rewrites.values()))))


def _cuts(places: Cells, lengths: Cells, rewrites: list[Rewrite]) -> Iterator[_Cut]:
    """Yields the values in the order in which they lie."""
    column, row = np.nonzero(lengths >= 0)
    starts = places[column, row]
    order = np.argsort(starts, kind="stable")
    ends = starts + lengths[column, row]
    found = zip(*(each[order].tolist() for each in (starts, ends, column, row)), strict=True)
    return (_Cut(start, end, rewrites[number], record) for start, end, number, record in found)


def _spliced(blocks: Blocks, cuts: Iterator[_Cut]) -> Iterator[tuple[int, bytes]]:
    """Yields each block's number of records and its bytes."""
    bounds = zip(blocks.starts.tolist(), blocks.ends.tolist(), blocks.counts.tolist(), strict=True)
    cut = next(cuts, None)
    for start, end, count in bounds:
        pieces: list[bytes] = []
        at = start
        while cut is not None and cut.start < end:
            pieces += (blocks.data[at : cut.start], cut.rewrite(blocks.data[cut.start : cut.end], cut.record))
            at, cut = cut.end, next(cuts, None)
        yield count, b"".join([*pieces, blocks.data[at:end]])
