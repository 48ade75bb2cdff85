"""Statistics of columns as manifests encode them, however a writer cut them; and Iceberg's form of single values."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from firnline.formats.avro import CorruptAvro
from firnline.formats.avro.encoded import encoded_texts, items_of, number_by_number
from firnline.formats.iceberg.statistics import ARRAYS, decoded
from firnline.formats.iceberg.types import of_single_values, shown_as


def zigzag(number: int) -> bytes:
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def numbers(pairs: dict[int, int], blocks: str = "one") -> bytes:
    """Returns a map as a writer encodes it: in one block, in a block for each entry, or with sizes before the items."""
    items = [zigzag(key) + zigzag(value) for key, value in pairs.items()]
    if blocks == "each":
        return b"".join(zigzag(1) + item for item in items) + b"\0"
    if blocks == "sized":
        return zigzag(-len(items)) + zigzag(sum(map(len, items))) + b"".join(items) + b"\0"
    return (zigzag(len(items)) if items else b"") + b"".join(items) + b"\0"


@pytest.mark.parametrize("blocks", ["one", "each", "sized"])
def test_maps_of_any_blocks(blocks: str) -> None:
    said = {1: 7, 2_147_483_647: -5, 3: 1 << 60}
    column = decoded(ARRAYS["value_counts"], pa.array([numbers(said, blocks), None, numbers({})], pa.binary()))
    assert column.type == ARRAYS["value_counts"]
    assert column.to_pylist() == [list(said.items()), None, []]


def test_bounds_and_lists() -> None:
    bound = zigzag(2) + zigzag(4) + zigzag(3) + b"abc" + zigzag(5) + zigzag(0) + b"\0"
    assert decoded(ARRAYS["lower_bounds"], pa.array([bound], pa.binary())).to_pylist() == [[(4, b"abc"), (5, b"")]]
    offsets = zigzag(2) + zigzag(4) + zigzag(1 << 40) + b"\0"
    column = decoded(ARRAYS["split_offsets"], pa.array([None, offsets], pa.binary()))
    assert column.to_pylist() == [None, [4, 1 << 40]]


@pytest.mark.parametrize("cut", range(1, 8))
def test_what_is_cut_short_is_called_damaged(cut: int) -> None:
    whole = numbers({1: 300, 2: 70_000})
    with pytest.raises(CorruptAvro):
        items_of(whole[:-cut], number_by_number, "numbers")
    with pytest.raises(CorruptAvro):
        encoded_texts(zigzag(1) + zigzag(2) + b"\xff\xfe" + b"\0")


SINGLE: list[tuple[str, bytes, Any]] = [
    ("boolean", b"\x01", True),
    ("int", (-7).to_bytes(4, "little", signed=True), -7),
    ("long", (9).to_bytes(4, "little"), 9),  # written when it was an int
    ("float", struct.pack("<f", 1.5), 1.5),
    ("double", struct.pack("<f", 1.5), 1.5),  # written when it was a float
    ("double", struct.pack("<d", -2.25), -2.25),
    ("date", (19_918).to_bytes(4, "little"), date(2024, 7, 14)),
    ("timestamp", (1_000_000).to_bytes(8, "little"), datetime(1970, 1, 1, 0, 0, 1)),
    ("timestamptz", (1_000_000).to_bytes(8, "little"), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
    ("string", "día".encode(), "día"),
    ("uuid", UUID(int=5).bytes, str(UUID(int=5))),
    ("decimal(9, 2)", (-125).to_bytes(2, "big", signed=True), Decimal("-1.25")),
    ("binary", b"\x00\xff", b"\x00\xff"),
]


@pytest.mark.parametrize(("kind", "raw", "value"), SINGLE)
def test_single_values_as_iceberg_writes_them(kind: str, raw: bytes, value: Any) -> None:
    found = of_single_values(kind, [raw, None])
    assert found.type == shown_as(kind)
    assert found.to_pylist() == [value, None]
