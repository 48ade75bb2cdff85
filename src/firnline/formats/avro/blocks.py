"""The blocks of a file: where they lie, and their bytes without compression. Sizes are claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from firnline.formats.avro.codecs import Codecs
from firnline.formats.avro.engine import Engine
from firnline.formats.avro.faults import CorruptAvro
from firnline.formats.avro.header import Header
from firnline.formats.avro.kernel import FAULTS, SPARE_ITEMS, SYNC_BYTES

# A file may hold this much once inflated, whatever its ratio. Below 2 GiB, so 32-bit Arrow offsets suffice.
MAX_BYTES: Final = 1 << 30
MAX_ROWS: Final = SPARE_ITEMS

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Packed:
    """The blocks of a file as they lie in it: the bytes of each, and how many records it claims."""

    pieces: list[bytes]
    counts: Numbers


@dataclass(frozen=True, slots=True)
class Blocks:
    """Bytes without compression, and for each block where it lies in them and how many records it claims."""

    data: bytes
    starts: Numbers
    ends: Numbers
    counts: Numbers

    def rows(self, width: int) -> int:
        """How many records there are. Refuses what `width` bytes for each, or memory, could not hold."""
        if width and bool(np.any(self.counts > (self.ends - self.starts) // width)):
            raise CorruptAvro("a block claims more records than its bytes can hold")
        total = sum(self.counts.tolist())  # in Python: a sum of hostile counts must not wrap around
        if total > MAX_ROWS:
            raise CorruptAvro(f"the file claims {total} records, more than {MAX_ROWS}")
        return total


def find_blocks(data: bytes, header: Header, engine: Engine) -> Packed:
    """The blocks as they lie in the file, each closed by the file's sync marker."""
    room = (len(data) - header.body) // (SYNC_BYTES + 2) + 1  # the smallest block: two lengths and the marker
    starts, ends, counts = (np.empty(room, dtype=np.int64) for _ in range(3))
    view, sync = engine.view(data), engine.view(header.sync)
    fault, found = engine.frame(view, header.body, len(data), sync, starts, ends, counts)
    if fault:
        raise CorruptAvro(f"block {found}: {FAULTS[fault]}")
    places = zip(starts[:found].tolist(), ends[:found].tolist(), strict=True)
    return Packed([data[start:end] for start, end in places], counts[:found])


def expand(packed: Sequence[Packed], codec: str, limit: int, codecs: Codecs) -> Blocks:
    """The blocks of some files end to end, without compression. Stops before `limit` bytes in all are exceeded."""
    if codec not in codecs.by_name:
        raise CorruptAvro(f"unknown codec {codec[:40]!r}")
    try:
        pieces = codecs.by_name[codec]([piece for each in packed for piece in each.pieces], limit)
    except codecs.errors as error:
        raise CorruptAvro(f"a {codec} block cannot be expanded: {error}") from None
    ends = np.cumsum(list(map(len, pieces)), dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])[:-1]
    return Blocks(b"".join(pieces), starts, ends, np.concatenate([each.counts for each in packed]))
