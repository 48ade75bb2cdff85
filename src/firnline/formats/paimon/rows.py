"""Partition values out of the binary row in which manifests carry them.

Four bytes say how many fields there are (big end first); then the row itself, small end first: a bit for each null
after eight bits of header, then eight bytes for each field. What does not fit lies behind, at an offset.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from firnline.errors import UnreadableMetadata, UnsupportedFormat
from firnline.formats.paimon.schema import Type

Value = bool | int | float | str | tuple[int, int] | None
"""Timestamps are milliseconds and the nanoseconds within; a decimal is its unscaled number."""

_HEADER_BITS = 8
_COMPACT_DIGITS, _COMPACT_FRACTION = 18, 3
_TEXTS = ("STRING", "VARCHAR", "CHAR")
_PLAIN: dict[str, str] = {
    "BOOLEAN": "<?", "TINYINT": "<b", "SMALLINT": "<h", "INT": "<i", "INTEGER": "<i", "DATE": "<i", "TIME": "<i",
    "BIGINT": "<q", "FLOAT": "<f", "DOUBLE": "<d",
}  # fmt: skip


def partition_values(data: bytes, types: tuple[Type, ...]) -> tuple[Value, ...]:
    """Returns the values, None where one is null. Raises UnreadableMetadata where the bytes are no such row."""
    try:
        (arity,) = struct.unpack_from(">i", data)
        if arity != len(types):
            raise UnreadableMetadata(f"a partition has {arity} fields, the schema {len(types)}", hint=_HINT)
        return tuple(_value(data[4:], place, kind, len(types)) for place, kind in enumerate(types))
    except (struct.error, UnicodeDecodeError, IndexError) as damage:
        raise UnreadableMetadata(f"a partition is no binary row: {damage}", hint=_HINT) from damage


_HINT = "nothing was changed"


def _value(row: bytes, place: int, kind: Type, arity: int) -> Value:
    bit = place + _HEADER_BITS
    if row[bit // 8] >> (bit % 8) & 1:
        return None
    slot = (arity + _HEADER_BITS + 63) // 64 * 8 + place * 8
    reader = _reader(kind)
    return reader(row, slot)


def _reader(kind: Type) -> Callable[[bytes, int], Value]:
    if kind.name in _TEXTS:
        return lambda row, slot: _bytes(row, slot).decode()
    if kind.name in _PLAIN:
        return lambda row, slot: _plain(_PLAIN[kind.name], row, slot)
    if kind.name == "DECIMAL":
        return lambda row, slot: _decimal(row, slot, kind.first or 10)
    if kind.name == "TIMESTAMP":
        return lambda row, slot: _timestamp(row, slot, 6 if kind.first is None else kind.first)
    raise UnsupportedFormat(f"a partition key of the type {kind.name} is not understood", hint=_HINT)


def _plain(layout: str, row: bytes, slot: int) -> Value:
    value: Value = struct.unpack_from(layout, row, slot)[0]
    return value


def _bytes(row: bytes, slot: int) -> bytes:
    """Returns a text of up to seven bytes from its slot, a longer one from where the slot points."""
    if row[slot + 7] & 0x80:
        return row[slot : slot + (row[slot + 7] & 0x7F)]
    size, offset = struct.unpack_from("<ii", row, slot)
    if size < 0 or offset < 0 or offset + size > len(row):
        raise IndexError("a text lies outside of it")
    return row[offset : offset + size]


def _decimal(row: bytes, slot: int, precision: int) -> int:
    if precision <= _COMPACT_DIGITS:
        return int(struct.unpack_from("<q", row, slot)[0])
    return int.from_bytes(_bytes(row, slot), "big", signed=True)


def _timestamp(row: bytes, slot: int, precision: int) -> tuple[int, int]:
    if precision <= _COMPACT_FRACTION:
        return int(struct.unpack_from("<q", row, slot)[0]), 0
    nanos, offset = struct.unpack_from("<ii", row, slot)
    return int(struct.unpack_from("<q", row, offset)[0]), nanos
