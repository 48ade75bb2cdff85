"""Which packages expand blocks: the fast ones where all of them are installed, else what everybody has. Sizes are
claims.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from firnline.formats.avro import plain
from firnline.formats.avro.engine import Way
from firnline.formats.avro.faults import CorruptAvro, UnsupportedAvro
from firnline.formats.avro.framing import Numbers, Packed
from firnline.formats.avro.kernel import SPARE_ITEMS

# A file may hold this much once inflated, whatever its ratio. Below 2 GiB, so 32-bit Arrow offsets suffice.
MAX_BYTES: Final = 1 << 30
MAX_ROWS: Final = SPARE_ITEMS


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


def expand(packed: Packed, codec: str, limit: int, codecs: Codecs) -> Blocks:
    """The blocks end to end, without compression. Stops before `limit` bytes in all are exceeded."""
    if codec not in codecs.by_name:
        raise UnsupportedAvro(f"the codec {codec[:40]!r} is not supported")
    try:
        pieces = codecs.by_name[codec](packed.pieces, limit)
    except codecs.errors as error:
        raise CorruptAvro(f"a {codec} block cannot be expanded: {error}") from None
    ends = np.cumsum(list(map(len, pieces)), dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])[:-1]
    return Blocks(b"".join(pieces), starts, ends, packed.counts)


@dataclass(frozen=True, slots=True)
class Codecs:
    """Each expands all blocks of a file at once, and raises one of `errors` or CorruptAvro."""

    by_name: Mapping[str, Callable[[list[bytes], int], list[Any]]]
    errors: Any


PLAIN: Final = Codecs(plain.CODECS, plain.ERRORS)


def codecs_for(way: Way) -> Codecs:
    """The plain ones where plain Python was asked for, so that nothing else is needed there; else the best."""
    return PLAIN if way == "python" else best()


@functools.cache
def best() -> Codecs:
    """The fast ones. The plain ones where a package is missing, as on executors that came without it."""
    try:
        from firnline.formats.avro import fast
    except ImportError:
        return PLAIN
    return Codecs(fast.CODECS, fast.ERRORS)
