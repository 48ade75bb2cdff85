"""Arrow columns from what the kernel left: a number, or a place and a length, or -1 for null; texts
may stay encoded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from firnline.formats.avro.encoded import sized, varint
from firnline.formats.avro.engine import KernelEngine
from firnline.formats.avro.faults import CorruptAvro
from firnline.formats.avro.program import Column
from firnline.formats.avro.schema import Enum, Plain

EMPTY = b"\x00"
"""An array without items, as every writer encodes it."""


def encoded(texts: Iterable[str]) -> bytes:
    """Returns an array of texts as Avro encodes it, in one block: what `encoded_texts` reads."""
    items = [text.encode() for text in texts]
    block = [varint(len(items)), *map(sized, items)] if items else []
    return b"".join([*block, EMPTY])


_FLOATS: Final = {"float": np.dtype("<f4"), "double": np.dtype("<f8")}
_MAX_TEXT: Final = (1 << 31) - 1


def to_arrow(column: Column, data: bytes, value: Any, length: Any, engine: KernelEngine) -> pa.Array:
    """The column in the type that was asked for."""
    match column.source:
        case None:
            return pa.nulls(len(value), column.type)
        case Enum(symbols):
            array = _symbols(column, symbols, value, length)
        case Plain("int" | "long" as kind):
            array = _integers(column, kind, value, length)
        case Plain("float" | "double" as kind):
            array = _floats(_FLOATS[kind], _packed(data, value, length, engine), length)
        case Plain("boolean"):
            array = _booleans(column, _packed(data, value, length, engine), length)
        case Plain("string"):
            array = _texts(column, _packed(data, value, length, engine), length)
        case _:
            array = _strings(pa.binary(), _packed(data, value, length, engine), length)
    return array if array.type == column.type else array.cast(column.type)


def _packed(data: bytes, value: Any, length: Any, engine: KernelEngine) -> Any:
    """The bytes of all rows, end to end."""
    out = engine.room(int(np.sum(length, where=length > 0, dtype=np.int64)))
    engine.gather(data, len(value), engine.numbers(value), engine.numbers(length), out)
    return out


def _validity(length: Any) -> pa.Buffer | None:
    valid = length >= 0
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def _strings(kind: pa.DataType, packed: Any, length: Any) -> pa.Array:
    offsets = np.zeros(len(length) + 1, dtype=np.int32)
    np.cumsum(np.maximum(length, 0), out=offsets[1:])
    buffers = [_validity(length), pa.py_buffer(offsets), pa.py_buffer(packed)]
    return pa.Array.from_buffers(kind, len(length), buffers)


def _texts(column: Column, packed: Any, length: Any) -> pa.Array:
    array = _strings(pa.string(), packed, length)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raise CorruptAvro(f"column {column.name}: a string is not UTF-8") from None
    return array


def _integers(column: Column, kind: str, value: Any, length: Any) -> pa.Array:
    if kind == "int" and len(value) and (value.min() < -(1 << 31) or value.max() >= 1 << 31):
        raise CorruptAvro(f"column {column.name}: an int is larger than 32 bits")
    return pa.Array.from_buffers(pa.int64(), len(value), [_validity(length), pa.py_buffer(value)])


def _symbols(column: Column, symbols: tuple[str, ...], value: Any, length: Any) -> pa.Array:
    """Symbols come from the schema, not from the rows, so a few bytes could ask for a huge column."""
    chosen = value[length >= 0]
    if len(chosen) and (chosen.min() < 0 or chosen.max() >= len(symbols)):
        raise CorruptAvro(f"column {column.name}: an enum has no symbol of that number")
    sizes = np.array([len(each.encode()) for each in symbols], dtype=np.int64)
    if len(chosen) and int(sizes[chosen].sum()) > _MAX_TEXT:
        raise CorruptAvro(f"column {column.name}: the symbols are too large")
    numbers = pa.Array.from_buffers(pa.int64(), len(value), [_validity(length), pa.py_buffer(value)])
    return pa.array(symbols, pa.string()).take(numbers)


def _floats(kind: Any, packed: Any, length: Any) -> pa.Array:
    numbers = np.zeros(len(length), dtype=kind)
    numbers[length >= 0] = np.frombuffer(packed, dtype=kind)
    buffers = [_validity(length), pa.py_buffer(numbers)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(kind), len(length), buffers)


def _booleans(column: Column, packed: Any, length: Any) -> pa.Array:
    given = np.frombuffer(packed, dtype=np.uint8)
    if (given > 1).any():
        raise CorruptAvro(f"column {column.name}: a boolean is neither 0 nor 1")
    flags = np.zeros(len(length), dtype=np.uint8)
    flags[length >= 0] = given
    bits = pa.py_buffer(np.packbits(flags, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(length), [_validity(length), bits])
