"""The blocks of a file: where they lie, and their bytes without compression. Sizes are claims."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
_CODEC_ERRORS: Final[Any] = (isal_zlib.error, zstandard.ZstdError, cramjam.DecompressionError)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Bytes, and for each block where it lies in them and how many records it claims."""

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


def find_blocks(data: bytes, header: Header, engine: Engine) -> Blocks:
    """The blocks as they lie in the file, each closed by the file's sync marker."""
    room = (len(data) - header.body) // (SYNC_BYTES + 2) + 1  # the smallest block: two lengths and the marker
    starts, ends, counts = (np.empty(room, dtype=np.int64) for _ in range(3))
    view, sync = engine.view(data), engine.view(header.sync)
    fault, found = engine.frame(view, header.body, len(data), sync, starts, ends, counts)
    if fault:
        raise CorruptAvro(f"block {found}: {FAULTS[fault]}")
    return Blocks(data, starts[:found], ends[:found], counts[:found])


def expand(blocks: Blocks, codec: str, limit: int) -> Blocks:
    """The same blocks without compression. Stops before `limit` bytes in total would be exceeded."""
    if codec == "null":
        if len(blocks.data) > limit:
            raise _too_large(limit)
        return blocks
    if codec not in CODECS:
        raise CorruptAvro(f"unknown codec {codec[:40]!r}")
    view, spans = memoryview(blocks.data), zip(blocks.starts.tolist(), blocks.ends.tolist(), strict=True)
    pieces: list[Any] = []
    try:
        pieces.extend(CODECS[codec]([view[start:end] for start, end in spans], limit))
    except _CODEC_ERRORS as error:
        raise CorruptAvro(f"block {len(pieces)}: {codec}: {error}") from None
    ends = np.cumsum(list(map(len, pieces)), dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])[:-1]
    return Blocks(b"".join(pieces), starts, ends, blocks.counts)


def _too_large(left: int) -> CorruptAvro:
    return CorruptAvro(f"the file holds too much: a block is larger than the {left} bytes that were left")


def _deflate(blocks: list[memoryview], left: int) -> Iterator[Any]:
    """libdeflate is the fastest on tiny blocks but must be told how large they may be; isal decides all the rest."""
    whole, ratio = deflate.deflate_decompress, DEFLATE_GUESS
    for block in blocks:
        room = len(block) * ratio
        try:
            out = whole(block, room) if 0 < room <= left else _up_to(block, left)
        except deflate.DeflateError:
            out = _up_to(block, left)
            ratio *= 2
        left -= len(out)
        yield out


def _up_to(block: memoryview, left: int) -> bytes:
    """A deflate stream, inflated no further than what is left."""
    stream = isal_zlib.decompressobj(-15)
    out: bytes = stream.decompress(block, left + 1)
    if len(out) > left:
        raise _too_large(left)
    if not stream.eof:
        raise CorruptAvro("a deflate stream is not complete")
    return out


def _snappy(blocks: list[memoryview], left: int) -> Iterator[Any]:
    claim, whole, checksum = cramjam.snappy.decompress_raw_len, cramjam.snappy.decompress_raw, isal_zlib.crc32
    for block in blocks:
        body = block[:-4]
        if claim(body) > min(left, SNAPPY_RATIO * len(body)):
            raise _too_large(left)
        out = whole(body)
        if checksum(out) != int.from_bytes(block[-4:], "big"):
            raise CorruptAvro("a snappy block has a wrong checksum")
        left -= len(out)
        yield out


def _zstandard(blocks: list[memoryview], left: int) -> Iterator[bytes]:
    frames = zstandard.ZstdDecompressor()  # one per file: it is fast to use again but not safe to share
    for block in blocks:
        claimed = zstandard.frame_content_size(block)
        if claimed > min(left, ZSTD_RATIO * len(block)):
            raise _too_large(left)
        out = frames.decompress(block) if claimed >= 0 else _unsized(frames, block, left)
        left -= len(out)
        yield out


def _unsized(frames: zstandard.ZstdDecompressor, block: memoryview, left: int) -> bytes:
    """A frame that does not say how large it is, as streaming writers make them."""
    try:
        return frames.decompress(block, max_output_size=min(ZSTD_GUESS * len(block), left))
    except zstandard.ZstdError:
        return _in_pieces(frames, block, left)


def _in_pieces(frames: zstandard.ZstdDecompressor, block: memoryview, left: int) -> bytes:
    """A frame of unknown size, piece by piece, so that no more than the limit is ever held."""
    out = bytearray()
    for piece in frames.read_to_iter(block):
        out += piece
        if len(out) > left:
            raise _too_large(left)
    return bytes(out)


CODECS: Final = {"deflate": _deflate, "snappy": _snappy, "zstandard": _zstandard}
