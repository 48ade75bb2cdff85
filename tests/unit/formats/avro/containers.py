"""Avro files made by hand, so that a test can put any bytes anywhere."""

from __future__ import annotations

import bz2
import json
import lzma
import zlib
from collections.abc import Callable
from typing import Any

import cramjam
import zstandard

SYNC = bytes(range(16))


def varint(number: int) -> bytes:
    """A number as Avro writes it. Takes numbers beyond 64 bits as well."""
    rest = number * 2 if number >= 0 else -number * 2 - 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def text(raw: bytes | str) -> bytes:
    """Bytes with their length before them."""
    raw = raw.encode() if isinstance(raw, str) else raw
    return varint(len(raw)) + raw


def header(schema: Any, codec: str = "null") -> bytes:
    """The start of a file. A schema of type bytes is written as it is."""
    raw = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    return b"Obj\x01" + varint(2) + text("avro.schema") + text(raw) + text("avro.codec") + text(codec) + b"\0" + SYNC


def block(count: int, body: bytes, sync: bytes = SYNC) -> bytes:
    """One block as it lies in a file."""
    return varint(count) + text(body) + sync


def file(schema: Any, *blocks: tuple[int, bytes], codec: str = "null") -> bytes:
    """A file whose blocks are given by record count and plain bytes."""
    return header(schema, codec) + b"".join(block(count, PACK[codec](body)) for count, body in blocks)


def deflated(body: bytes) -> bytes:
    """A raw deflate stream."""
    return zlib.compress(body)[2:-4]


def snappy(body: bytes) -> bytes:
    """A raw snappy block and its checksum."""
    return bytes(cramjam.snappy.compress_raw(body)) + zlib.crc32(body).to_bytes(4, "big")


def zstd(body: bytes) -> bytes:
    """A frame that says how large it is."""
    return zstandard.ZstdCompressor().compress(body)


def zstd_streamed(body: bytes) -> bytes:
    """A frame that does not say how large it is, as Java's streaming writer makes them."""
    return zstandard.ZstdCompressor(write_content_size=False).compress(body)


PACK: dict[str, Callable[[bytes], bytes]] = {
    "null": bytes,
    "deflate": deflated,
    "snappy": snappy,
    "zstandard": zstd,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


def record(*fields: tuple[str, Any], name: str = "r") -> dict[str, Any]:
    """A record's schema."""
    return {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in fields]}
