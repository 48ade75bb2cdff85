"""How blocks are expanded with what Python and pyarrow bring: slower, and equal to the fast packages on every file.

An executor that came without those packages reads with this. Sizes are claims.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from firnline.formats.avro.faults import CorruptAvro, too_large

# No valid stream grows more than this: 3 bytes of snappy make at most 64.
SNAPPY_RATIO: Final = 64
_PIECE: Final = 1 << 18
_XZ_MEMORY: Final = 1 << 27
"""What the strongest preset of xz needs, and some more: a header may claim gigabytes."""
SLOW_ERRORS: Final[Any] = (OSError, EOFError, lzma.LZMAError)
ERRORS: Final[Any] = (zlib.error, pa.ArrowInvalid, *SLOW_ERRORS)


def each(expand_one: Callable[[bytes, int], bytes], packed: list[bytes], limit: int) -> list[bytes]:
    """Block by block, each held to what the ones before have left."""
    pieces = []
    left = limit
    for block in packed:
        pieces.append(expand_one(block, left))
        left -= len(pieces[-1])
        if left < 0:
            raise too_large(limit)
    return pieces


def as_it_is(packed: list[bytes], limit: int) -> list[bytes]:
    if sum(map(len, packed)) > limit:
        raise too_large(limit)
    return packed


def _inflate(block: bytes, left: int) -> bytes:
    """A deflate stream, inflated at most one byte beyond what is left."""
    stream = zlib.decompressobj(-15)
    out = stream.decompress(block, left + 1)
    if len(out) <= left and not stream.eof:
        raise CorruptAvro("a deflate stream is not complete")
    return out


def _unsnap(block: bytes, left: int) -> bytes:
    """A snappy block, whose claim is compared with its size before anything is expanded."""
    body = block[:-4]
    claim = _claim(body)
    if claim > left or claim > SNAPPY_RATIO * len(body):
        raise too_large(left)
    out: bytes = pa.decompress(body, claim, "snappy", asbytes=True)
    if zlib.crc32(out).to_bytes(4, "big") != block[-4:]:
        raise CorruptAvro("a snappy block has a wrong checksum")
    return out


def _claim(body: bytes) -> int:
    """How large the block says it is: seven bits a byte, the lowest first."""
    claim = 0
    for place, byte in enumerate(body[:5]):
        claim |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return claim
    raise CorruptAvro("a snappy block does not say how large it is")


def _unpack(block: bytes, left: int) -> bytes:
    """A zstd frame, expanded at most one piece beyond what is left. Bytes after it are refused."""
    if not block:
        raise CorruptAvro("a zstandard block is empty")
    out = bytearray()
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        while len(out) <= left and (piece := stream.read(_PIECE)):
            out += piece
    return bytes(out)


def _unbzip(block: bytes, left: int) -> bytes:
    return _whole(bz2.BZ2Decompressor(), block, left, "bzip2")


def _unxz(block: bytes, left: int) -> bytes:
    return _whole(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY), block, left, "xz")


def _whole(stream: bz2.BZ2Decompressor | lzma.LZMADecompressor, block: bytes, left: int, name: str) -> bytes:
    """A stream, expanded at most one byte beyond what is left. Bytes after it are refused."""
    out = stream.decompress(block, left + 1)
    if len(out) <= left and (not stream.eof or stream.unused_data):
        raise CorruptAvro(f"a {name} stream is not complete, or more follows it")
    return out


def _by(expand_one: Callable[[bytes, int], bytes]) -> Callable[[list[bytes], int], list[bytes]]:
    return lambda packed, limit: each(expand_one, packed, limit)


SLOW_CODECS: Final = {"bzip2": _by(_unbzip), "xz": _by(_unxz)}
"""What Python's own library expands, however fast the rest is: hardly a writer chooses them."""
CODECS: Final = {
    "null": as_it_is,
    "deflate": _by(_inflate),
    "snappy": _by(_unsnap),
    "zstandard": _by(_unpack),
    **SLOW_CODECS,
}
