"""Partition values: out of the binary row, and into the names of folders."""

from __future__ import annotations

import struct

import pytest

from firnline.errors import UnreadableMetadata, UnsupportedFormat
from firnline.formats.paimon.reading.schema import Type, parse_type
from firnline.formats.paimon.walking.partitions import Value, escaped, java_number, partition_values, value_text

TEXT = Type("STRING")


def row(*slots: bytes | None, behind: bytes = b"") -> bytes:
    """Returns a row of up to 56 fields: a bit for each null, eight bytes for each field, and what lies behind."""
    bits = sum(1 << (8 + place) for place, slot in enumerate(slots) if slot is None)
    fixed = b"".join((slot or b"").ljust(8, b"\0") for slot in slots)
    return struct.pack(">i", len(slots)) + struct.pack("<Q", bits) + fixed + behind


def short(text: str) -> bytes:
    data = text.encode()
    return data.ljust(7, b"\0") + bytes([0x80 | len(data)])


@pytest.mark.parametrize(
    ("data", "types", "values"),
    [
        (row(short("a")), (TEXT,), ("a",)),
        (row(None, short("")), (TEXT, TEXT), (None, "")),
        (row(struct.pack("<ii", 11, 16), behind=b"hello world"), (TEXT,), ("hello world",)),
        (row(struct.pack("<i", -7)), (Type("INT"),), (-7,)),
        (row(struct.pack("<q", 1 << 40)), (Type("BIGINT"),), (1 << 40,)),
        (row(struct.pack("<?", True)), (Type("BOOLEAN"),), (True,)),
        (row(struct.pack("<q", 1234)), (Type("DECIMAL", 10, 2),), (1234,)),
        (row(struct.pack("<q", 5)), (Type("TIMESTAMP", 3),), ((5, 0),)),
        (row(struct.pack("<ii", 7, 16), behind=struct.pack("<q", 5)), (Type("TIMESTAMP", 6),), ((5, 7),)),
        (row(), (), ()),
    ],
)
def test_values_of_a_row(data: bytes, types: tuple[Type, ...], values: tuple[Value, ...]) -> None:
    assert partition_values(data, types) == values


@pytest.mark.parametrize(
    "data", [b"", row(short("a"))[:9], row(struct.pack("<ii", 99, 16)), row(short("a"), short("b"))]
)
def test_bytes_that_are_no_row(data: bytes) -> None:
    with pytest.raises(UnreadableMetadata, match="partition"):
        partition_values(data, (TEXT,))


@pytest.mark.parametrize(
    ("value", "kind", "legacy", "text"),
    [
        (None, TEXT, True, None),
        (" ", TEXT, True, None),
        (19_999, Type("DATE"), True, "19999"),
        (19_999, Type("DATE"), False, "2024-10-03"),
        (3_661_001, Type("TIME", 3), False, "01:01:01.001"),
        ((1_700_000_040_000, 0), Type("TIMESTAMP", 3), True, "2023-11-14T22:14"),
        ((1_700_000_000_123, 0), Type("TIMESTAMP", 3), True, "2023-11-14T22:13:20.123"),
        ((1_700_000_000_123, 456_000), Type("TIMESTAMP", 6), True, "2023-11-14T22:13:20.123456"),
        ((1_700_000_000_123, 0), Type("TIMESTAMP", 6), False, "2023-11-14 22:13:20.123000"),
        ((0, 0), Type("TIMESTAMP", 0), False, "1970-01-01 00:00:00"),
        (1234, Type("DECIMAL", 10, 2), True, "12.34"),
        (-5, Type("DECIMAL", 3, 3), True, "-0.005"),
        (False, Type("BOOLEAN"), True, "false"),
    ],
)
def test_texts_of_values(value: Value, kind: Type, legacy: bool, text: str | None) -> None:
    assert value_text(value, kind, legacy) == text


@pytest.mark.parametrize(
    ("number", "kind", "text"),
    [
        (1.0, "DOUBLE", "1.0"),
        (0.1, "DOUBLE", "0.1"),
        (-0.0, "DOUBLE", "-0.0"),
        (1e7, "DOUBLE", "1.0E7"),
        (1234567.5, "DOUBLE", "1234567.5"),
        (0.001, "DOUBLE", "0.001"),
        (0.00012, "DOUBLE", "1.2E-4"),
        (float("inf"), "DOUBLE", "Infinity"),
        (0.10000000149011612, "FLOAT", "0.1"),
        (16777216.0, "FLOAT", "1.6777216E7"),
    ],
)
def test_numbers_as_java_writes_them(number: float, kind: str, text: str) -> None:
    assert java_number(number, kind) == text


def test_what_cannot_be_in_a_path_is_escaped() -> None:
    assert escaped("a/b=c%\t{[^]}") == "a%2Fb%3Dc%25%09%7B%5B%5E%5D%7D"


def test_types() -> None:
    assert parse_type("DECIMAL(10, 2) NOT NULL", "p", "x") == Type("DECIMAL", 10, 2)
    assert parse_type("TIMESTAMP(6) WITH LOCAL TIME ZONE", "p", "x") == Type("TIMESTAMP", 6)
    with pytest.raises(UnsupportedFormat, match="MAP"):
        parse_type("MAP<INT, INT>", "p", "x")
    with pytest.raises(UnreadableMetadata, match="key p"):
        parse_type(None, "p", "x")
