"""The frame that all metadata objects have: 39 bytes that say what follows, then one zstd frame.

No checksum is in it. What is damaged inside the frame is found by what it says, or by what other objects say of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import zstandard

from firnline.formats.icechunk.reading.damage import CorruptIcechunk, UnsupportedIcechunk
from firnline.inflate import believable

MAGIC: Final = "ICE🧊CHUNK".encode()
LARGEST_BODY: Final = (1 << 31) - 1
"""No larger buffer exists: its places are counted in 32 bits, one of which is a sign."""

_WRITER_ENDS: Final = 36
_HEADER: Final = 39
_VERSIONS: Final = (1, 2)
_ZSTD: Final = 1
_RLE: Final = 1
"""The type of a block that is one byte, over and over."""


class ObjectType(IntEnum):
    SNAPSHOT = 1
    MANIFEST = 2
    TRANSACTION_LOG = 4
    REPO = 6


@dataclass(frozen=True, slots=True)
class Envelope:
    """What the first bytes of an object say, and its body, unpacked."""

    spec: int
    writer: str
    body: bytes


def opened(data: bytes, expected: ObjectType) -> Envelope:
    """Returns the object's body. Raises CorruptIcechunk unless it is a whole object of this type, UnsupportedIcechunk
    where its version or its compression is not known.
    """
    if len(data) < _HEADER:
        raise CorruptIcechunk(f"it has {len(data)} bytes, fewer than its header")
    if not data.startswith(MAGIC):
        raise CorruptIcechunk("it does not begin as Icechunk's objects do")
    spec, kind, compression = data[_WRITER_ENDS:_HEADER]
    if spec not in _VERSIONS:
        raise UnsupportedIcechunk(f"version {spec} of the format; known are 1 and 2")
    if kind != expected:
        raise CorruptIcechunk(f"it is an object of type {kind}, not {expected.value} ({expected.name.lower()})")
    if compression != _ZSTD:
        raise UnsupportedIcechunk(f"compression {compression}; only zstd ({_ZSTD}) is known")
    writer = data[len(MAGIC) : _WRITER_ENDS].decode(errors="replace").rstrip(" \0")
    return Envelope(spec, writer, _unpacked(data[_HEADER:]))


def _unpacked(packed: bytes) -> bytes:
    """Returns what the frame holds. A frame that is cut, one with bytes after it, and one that becomes more than
    `believable` are refused, the latter before there is memory for it.
    """
    limit = min(believable(len(packed)), LARGEST_BODY)
    try:
        if (claimed := zstandard.frame_content_size(packed)) > limit:
            raise CorruptIcechunk(f"its {len(packed):,} bytes say that they unpack to {claimed:,}, over {limit:,}")
        if (ends := _frame_length(packed)) != len(packed):
            raise CorruptIcechunk(f"its zstd frame has {ends:,} bytes, where {len(packed):,} are there")
        return zstandard.ZstdDecompressor().decompress(packed, max_output_size=limit)
    except zstandard.ZstdError as damage:
        raise CorruptIcechunk(f"its zstd frame cannot be unpacked to at most {limit:,} bytes: {damage}") from damage


def _frame_length(packed: bytes) -> int:
    """Returns the length of the frame, by the lengths of its blocks. The library ignores bytes that come after a frame
    which does not state the size of its content.
    """
    at, last = zstandard.frame_header_size(packed), False
    while not last and at < len(packed):
        block = int.from_bytes(packed[at : at + 3], "little")
        last = bool(block & 1)
        at += 3 + (1 if block >> 1 & 3 == _RLE else block >> 3)
    return at + (4 if zstandard.get_frame_parameters(packed).has_checksum else 0)
