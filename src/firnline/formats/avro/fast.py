"""How blocks are expanded where the fast packages are: libdeflate, isal, snappy and zstd. Sizes are claims."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from struct import Struct
from typing import Any, Final

import cramjam
import deflate
import zstandard
from isal import isal_zlib

from firnline.formats.avro.faults import CorruptAvro, too_large
from firnline.formats.avro.plain import SLOW_CODECS, SLOW_ERRORS, SNAPPY_RATIO, as_it_is, each

# No valid stream grows more than this: a zstd block of 4 bytes makes 128 KiB.
ZSTD_RATIO: Final = 1 << 15
# Times the compressed size: room for a first try where a block does not say how large it is.
DEFLATE_GUESS: Final = 8
ZSTD_GUESS: Final = 16
_FOUR_BYTES: Final = Struct(">I")
ERRORS: Final[Any] = (isal_zlib.error, zstandard.ZstdError, cramjam.DecompressionError, *SLOW_ERRORS)


def _deflate(packed: list[bytes], limit: int) -> list[Any]:
    """libdeflate is fastest on tiny blocks, but must be told how large they may be; isal decides all other cases."""
    rooms = [DEFLATE_GUESS * len(block) for block in packed]
    if sum(rooms) <= limit:
        with suppress(deflate.DeflateError):
            return list(map(deflate.deflate_decompress, packed, rooms))
    return each(_inflate, packed, limit)


def _snappy(packed: list[bytes], limit: int) -> list[Any]:
    bodies = [block[:-4] for block in packed]
    claims = list(map(cramjam.snappy.decompress_raw_len, bodies))
    if sum(claims) > limit or any(claim > SNAPPY_RATIO * len(body) for claim, body in zip(claims, bodies, strict=True)):
        raise too_large(limit)
    pieces = list(map(cramjam.snappy.decompress_raw, bodies))
    if b"".join(map(_FOUR_BYTES.pack, map(isal_zlib.crc32, pieces))) != b"".join(block[-4:] for block in packed):
        raise CorruptAvro("a snappy block has a wrong checksum")
    return pieces


def _zstandard(packed: list[bytes], limit: int) -> list[bytes]:
    frames = zstandard.ZstdDecompressor()  # one per file: it is fast to use again but not safe to share
    claims = list(map(zstandard.frame_content_size, packed))
    if min(claims, default=0) < 0:  # streaming writers do not say how large a frame is
        return each(partial(_unpack, frames), packed, limit)
    if sum(claims) > limit or any(claim > ZSTD_RATIO * len(block) for claim, block in zip(claims, packed, strict=True)):
        raise too_large(limit)
    return list(map(frames.decompress, packed))


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


CODECS: Final = {"null": as_it_is, "deflate": _deflate, "snappy": _snappy, "zstandard": _zstandard, **SLOW_CODECS}
