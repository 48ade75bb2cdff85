"""Values of Iceberg's primitive types as Arrow columns: as they are decoded, and as engines show them."""

from __future__ import annotations

import re
import struct
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_WHOLE, _REAL, _RAW = pa.int64(), pa.float64(), pa.binary()
_READ = {
    "boolean": pa.bool_(), "int": _WHOLE, "long": _WHOLE, "float": _REAL, "double": _REAL, "string": pa.string(),
    "date": _WHOLE, "time": _WHOLE, "timestamp": _WHOLE, "timestamptz": _WHOLE,
    "timestamp_ns": _WHOLE, "timestamptz_ns": _WHOLE,
}  # fmt: skip
"""What a decoder is asked for: the widest, because a column may have been promoted since a value was written."""
_SHOWN = {
    **_READ, "int": pa.int32(), "float": pa.float32(), "date": pa.date32(), "uuid": pa.string(),
    "timestamp": pa.timestamp("us"), "timestamptz": pa.timestamp("us", "UTC"),
}  # fmt: skip
_FLOATS = {4: "<f", 8: "<d"}


def read_as(kind: str) -> pa.DataType:
    return _READ.get(kind, _RAW)


def shown_as(kind: str) -> pa.DataType:
    decimal = _DECIMAL.fullmatch(kind)
    return pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else _SHOWN.get(kind, _RAW)


def shown(kind: str, values: pa.Array) -> pa.Array:
    """Returns decoded values as the type that engines know."""
    decimal = _DECIMAL.fullmatch(kind)
    if decimal:
        return pa.array([_decimal(each, int(decimal[2])) for each in values.to_pylist()], shown_as(kind))
    if kind == "uuid":
        texts = [None if each is None else str(uuid.UUID(bytes=each)) for each in values.to_pylist()]
        return pa.array(texts, pa.string())
    narrow = values.cast(pa.int32()) if kind == "date" else values
    return narrow.cast(shown_as(kind))


def _decimal(raw: bytes | None, scale: int) -> Decimal | None:
    return None if raw is None else Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-scale)


def of_single_values(kind: str, values: Sequence[bytes | None]) -> pa.Array:
    """Returns values in Iceberg's binary form for single ones, such as the bounds of a column. One that was written
    before its column was promoted is shorter.
    """
    decoded = [None if each is None else _single(read_as(kind), each) for each in values]
    return shown(kind, pa.array(decoded, read_as(kind)))


def _single(kind: pa.DataType, raw: bytes) -> Any:
    if kind == _WHOLE:
        return int.from_bytes(raw, "little", signed=True)
    if kind == _REAL:
        return struct.unpack(_FLOATS[len(raw)], raw)[0] if len(raw) in _FLOATS else None
    if kind == pa.bool_():
        return any(raw)
    return raw.decode(errors="replace") if kind == pa.string() else raw
