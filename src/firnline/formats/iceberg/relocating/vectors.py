"""Deletion vectors: a Puffin file, whose footer says which data file each of its vectors is about."""

from __future__ import annotations

import json
from functools import partial
from struct import Struct
from typing import Any, Final

import pyarrow as pa

from firnline.formats.damage import Damaged, NotUnderstood
from firnline.formats.iceberg.relocating.naming import MovedPaths, NamingFile, Sizes
from firnline.inflate import believable

_MAGIC: Final = b"PFA1"
_END: Final = Struct("<iI4s")
"""The size of the payload, the flags and the magic: the last bytes of a file."""
_COMPRESSED: Final = 1
_REFERENCED: Final = "referenced-data-file"


class DamagedPuffin(Damaged):
    """The bytes are no readable Puffin file."""


class StrangePuffin(DamagedPuffin, NotUnderstood):
    """The bytes may be sound, in a way of writing that is not read here."""


def read_vectors(data: bytes) -> NamingFile:
    """Returns the file. Raises DamagedPuffin."""
    start, footer = _footer_of(data)
    return NamingFile(partial(_written, data[:start], footer))


def _written(vectors: bytes, footer: dict[str, Any], paths: MovedPaths, _: Sizes) -> bytes:
    """Returns the vectors as they are, where they are, and the footer after them, without compression."""
    blobs = [_moved(blob, paths) for blob in footer["blobs"]]
    payload = json.dumps({**footer, "blobs": blobs}, separators=(",", ":")).encode()
    return vectors + _MAGIC + payload + _END.pack(len(payload), 0, _MAGIC)


def _moved(blob: dict[str, Any], paths: MovedPaths) -> dict[str, Any]:
    properties = blob.get("properties") or {}
    if _REFERENCED not in properties:
        return blob
    return {**blob, "properties": {**properties, _REFERENCED: paths.of(properties[_REFERENCED])}}


def _footer_of(data: bytes) -> tuple[int, dict[str, Any]]:
    """Returns the offset of the footer, and what the footer says. Raises DamagedPuffin, or StrangePuffin if the flags
    are not known.
    """
    if len(data) < 2 * len(_MAGIC) + _END.size or not data.startswith(_MAGIC):
        raise DamagedPuffin("it is not a Puffin file")
    end = len(data) - _END.size
    size, flags, magic = _END.unpack_from(data, end)
    start = end - size - len(_MAGIC)
    if magic != _MAGIC or size < 0 or start < len(_MAGIC) or data[start : start + len(_MAGIC)] != _MAGIC:
        raise DamagedPuffin("its footer is cut short")
    if flags & ~_COMPRESSED:
        raise StrangePuffin(f"its footer has the flags {flags:#x}")
    payload = data[end - size : end]
    return start, _checked(_parsed(_expanded(payload) if flags else payload), start)


def _expanded(payload: bytes) -> bytes:
    limit = believable(len(payload))
    try:
        with pa.CompressedInputStream(pa.BufferReader(payload), "lz4") as stream:
            found = bytes(stream.read(limit + 1))
    except (pa.ArrowException, OSError) as damage:
        raise DamagedPuffin(f"its footer cannot be expanded: {damage}") from None
    if len(found) > limit:
        raise DamagedPuffin(f"its footer holds more than {limit:,} bytes")
    return found


def _parsed(payload: bytes) -> Any:
    try:
        return json.loads(payload.decode(), parse_constant=_refused)
    except (ValueError, RecursionError) as damage:
        raise DamagedPuffin(f"its footer is not JSON: {damage}") from None


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _checked(footer: Any, end: int) -> dict[str, Any]:
    """Returns the footer where it has the parts that are rewritten, and names no bytes beyond `end`."""
    match footer:
        case {"blobs": [*blobs]} if all(_is_sound(blob, end) for blob in blobs):
            return dict(footer)
    raise DamagedPuffin("its footer does not say where its blobs lie and what they are about")


def _is_sound(blob: Any, end: int) -> bool:
    match blob:
        case {"offset": int(offset), "length": int(length)} if 0 <= offset <= offset + length <= end:
            properties = {} if blob.get("properties") is None else blob["properties"]
            return isinstance(properties, dict) and isinstance(properties.get(_REFERENCED, ""), str)
    return False
