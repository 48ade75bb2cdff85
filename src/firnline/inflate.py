"""How much compressed bytes of others may become: a few megabytes can stand for gigabytes, which no memory holds."""

from __future__ import annotations

import zlib

BELIEVED = 64 << 20
"""What any object may hold, however small it is."""
RATIO = 200
"""How many times its size any larger one may hold. Metadata is full of names that occur once: it shrinks to a fiftieth
at best, where a stream that is made to burst shrinks to a thousandth.
"""
_PIECE = 1 << 20


def believable(packed: int) -> int:
    """Returns how many bytes may come out of so many."""
    return max(BELIEVED, RATIO * packed)


def gunzipped(data: bytes, largest: int) -> bytes:
    """Returns what the gzip stream holds. Raises ValueError or zlib.error where it is damaged, or holds too much.

    A stream that could burst is inflated once for its size alone: what comes out is thrown away piece by piece.
    """
    limit = min(believable(len(data)), largest)
    if _is_larger(data, limit):
        raise ValueError(f"its {len(data):,} bytes inflate to more than {limit:,}")
    inflate = zlib.decompressobj(wbits=31)
    text = inflate.decompress(data)
    if not inflate.eof:
        raise ValueError("compressed data is cut short")
    return text


def _is_larger(data: bytes, limit: int) -> bool:
    inflate, size, rest = zlib.decompressobj(wbits=31), 0, data
    while rest and not inflate.eof and size <= limit:
        size += len(inflate.decompress(rest, _PIECE))
        rest = inflate.unconsumed_tail
    return size > limit
