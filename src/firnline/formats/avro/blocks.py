"""The blocks of a file: where they lie, and their bytes without compression. Sizes are claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from struct import Struct
from typing import Any, Final

import cramjam
import deflate
import numpy as np
import zstandard
from isal import isal_zlib

from firnline.formats.avro.engine import Engine
from firnline.formats.avro.faults import CorruptAvro
from firnline.formats.avro.header import Header
from firnline.formats.avro.kernel import FAULTS, SPARE_ITEMS, SYNC_BYTES

# A file may hold this much once inflated, whatever its ratio. Below 2 GiB, so 32-bit Arrow offsets suffice.
MAX_BYTES: Final = 1 << 30
MAX_ROWS: Final = SPARE_ITEMS
# No valid stream grows more than this: 3 bytes of snappy make at most 64, a zstd block of 4 bytes makes 128 KiB.
SNAPPY_RATIO: Final = 64
ZSTD_RATIO: Final = 1 << 15
# Times the compressed size: room for a first try where a block does not say how large it is.
DEFLATE_GUESS: Final = 8
ZSTD_GUESS: Final = 16
_FOUR_BYTES: Final = Struct(">I")

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
_CODEC_ERRORS: Final[Any] = (isal_zlib.error, zstandard.ZstdError, cramjam.DecompressionError)


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


def expand(packed: Sequence[Packed], codec: str, limit: int) -> Blocks:
    """The blocks of some files end to end, without compression. Stops before `limit` bytes in all are exceeded."""
    if codec not in CODECS:
        raise CorruptAvro(f"unknown codec {codec[:40]!r}")
    try:
        pieces = CODECS[codec]([piece for each in packed for piece in each.pieces], limit)
    except _CODEC_ERRORS as error:
        raise CorruptAvro(f"a {codec} block cannot be expanded: {error}") from None
    ends = np.cumsum(list(map(len, pieces)), dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])[:-1]
    return Blocks(b"".join(pieces), starts, ends, np.concatenate([each.counts for each in packed]))


def _too_large(limit: int) -> CorruptAvro:
    return CorruptAvro(f"the file claims to hold, or holds, more than {limit} bytes")


def _as_it_is(packed: list[bytes], limit: int) -> list[bytes]:
    if sum(map(len, packed)) > limit:
        raise _too_large(limit)
    return packed


def _deflate(packed: list[bytes], limit: int) -> list[Any]:
    """libdeflate is fastest on tiny blocks, but must be told how large they may be; isal decides all other cases."""
    rooms = [DEFLATE_GUESS * len(block) for block in packed]
    if sum(rooms) <= limit:
        with suppress(deflate.DeflateError):
            return list(map(deflate.deflate_decompress, packed, rooms))
    return _each(_inflate, packed, limit)


def _snappy(packed: list[bytes], limit: int) -> list[Any]:
    bodies = [block[:-4] for block in packed]
    claims = list(map(cramjam.snappy.decompress_raw_len, bodies))
    if sum(claims) > limit or any(claim > SNAPPY_RATIO * len(body) for claim, body in zip(claims, bodies, strict=True)):
        raise _too_large(limit)
    pieces = list(map(cramjam.snappy.decompress_raw, bodies))
    if b"".join(map(_FOUR_BYTES.pack, map(isal_zlib.crc32, pieces))) != b"".join(block[-4:] for block in packed):
        raise CorruptAvro("a snappy block has a wrong checksum")
    return pieces


def _zstandard(packed: list[bytes], limit: int) -> list[bytes]:
    frames = zstandard.ZstdDecompressor()  # one per file: it is fast to use again but not safe to share
    claims = list(map(zstandard.frame_content_size, packed))
    if min(claims, default=0) < 0:  # streaming writers do not say how large a frame is
        return _each(partial(_unpack, frames), packed, limit)
    if sum(claims) > limit or any(claim > ZSTD_RATIO * len(block) for claim, block in zip(claims, packed, strict=True)):
        raise _too_large(limit)
    return list(map(frames.decompress, packed))


def _each(expand_one: Callable[[bytes, int], bytes], packed: list[bytes], limit: int) -> list[bytes]:
    """Block by block, each held to what the ones before have left."""
    pieces = []
    left = limit
    for block in packed:
        pieces.append(expand_one(block, left))
        left -= len(pieces[-1])
        if left < 0:
            raise _too_large(limit)
    return pieces


def _inflate(block: bytes, left: int) -> bytes:
    """A deflate stream, inflated at most one byte beyond what is left."""
    stream = isal_zlib.decompressobj(-15)
    out: bytes = stream.decompress(block, left + 1)
    if len(out) <= left and not stream.eof:
        raise CorruptAvro("a deflate stream is not complete")
    return out


def _unpack(frames: zstandard.ZstdDecompressor, block: bytes, left: int) -> bytes:
    """A zstd frame, expanded at most one piece beyond what is left."""
    with suppress(zstandard.ZstdError):
        return frames.decompress(block, max_output_size=min(ZSTD_GUESS * len(block), left))
    out = bytearray()
    for piece in frames.read_to_iter(block):
        out += piece
        if len(out) > left:
            break
    return bytes(out)


CODECS: Final = {"null": _as_it_is, "deflate": _deflate, "snappy": _snappy, "zstandard": _zstandard}
