"""Partition values as folders: for generated values of every type the very names that Paimon's Java gives."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from firnline.formats.paimon.reading.schema import Schema, parse_type
from firnline.formats.paimon.walking.layout import Layout
from harness.paimon.gateway import Jvm
from harness.paimon.worlds import Paimon

SEED, COUNT = 20_261_116, 60
SPACES = "\t\n\x0b\x0c\r\x1c\x1f \x85\xa0\u1680\u2000\u2007\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"
ODD_TEXTS = (
    "", "   ", "a b", " a ", "\x7f\x80", "%41", "a/b=c", "ü", "e\u0301", "\U0001f600", "__DEFAULT_PARTITION__",
    "\"#%'*/:=?\\{}[]^", *SPACES, SPACES, "x" * 200,
)  # fmt: skip
Draw = Callable[[random.Random], Any]


def _text(chance: random.Random) -> str:
    return "".join(chr(chance.choice((chance.randrange(0x80), chance.randrange(0xD800)))) for _ in range(9))


def _double(chance: random.Random) -> float:
    return float(struct.unpack("<d", chance.randbytes(8))[0])


def _float(chance: random.Random) -> float:
    return float(struct.unpack("<f", chance.randbytes(4))[0])


def _within(bits: int) -> Draw:
    return lambda chance: chance.randrange(-(1 << bits - 1), 1 << bits - 1) >> chance.randrange(bits)


def _digits(count: int) -> Draw:
    return lambda chance: chance.randrange(-(10**count) + 1, 10**count) // 10 ** chance.randrange(count)


def _moment(chance: random.Random) -> tuple[int, int]:
    return chance.randrange(-62_135_596_800_000, 253_402_300_799_999), chance.randrange(1_000_000)


DAY_MS = 86_400_000
MOMENTS = (
    (0, 0),
    (60_000, 0),
    (1_000, 0),
    (1, 0),
    (-1, 999_999),
    (-62_135_596_800_000, 0),
    (-50_000_000_000_123, 0),
    (253_402_300_800_000, 0),
    (-62_167_219_200_001, 0),
    (-99_999_999_999_999, 0),
    (9_999_999_999_999_999, 0),
)
DATES = (0, 19_999, -719_162, -719_163, -500_000, -800_000, 2_932_896, 2_932_897, 4_000_000, -719_529, -1_000_000)
TYPES: dict[str, tuple[Sequence[Any], Draw]] = {
    "STRING": (ODD_TEXTS, _text),
    "BOOLEAN": ((True, False), lambda chance: chance.random() < 0.5),
    "TINYINT": ((0,), _within(8)),
    "SMALLINT": ((0,), _within(16)),
    "INT": ((0,), _within(32)),
    "BIGINT": ((0,), _within(64)),
    "FLOAT": ((0.0, -0.0, 1e10, 3e-5, float("inf"), float("-inf"), float("nan")), _float),
    "DOUBLE": (
        (0.0, -0.0, 1e16, 1e17, 1.5e300, 123456789.0, 1e-5, 2.0**60, 1e23, 2e23, float("inf"), float("nan")),
        _double,
    ),
    "DECIMAL(5, 0)": ((0, 7), _digits(5)),
    "DECIMAL(10, 2)": ((0, 5, -5), _digits(10)),
    "DECIMAL(18, 18)": ((0, 1, -1), _digits(18)),
    "DECIMAL(38, 0)": ((0, 10**37), _digits(38)),
    "DECIMAL(38, 10)": ((0, 10**37 + 1, -1), _digits(38)),
    "DECIMAL(30, 30)": ((0, 1), _digits(30)),
    "DATE": (DATES, lambda chance: chance.randrange(-800_000, 4_000_000)),
    **{
        f"TIME({digits})": ((0, 1_000, 3_661_000, DAY_MS - 1), lambda chance: chance.randrange(DAY_MS))
        for digits in (0, 3)
    },
    **{f"TIMESTAMP({digits})": (MOMENTS, _moment) for digits in (0, 3, 6, 9)},
}
WRITES = {"STRING": "writeString", "BOOLEAN": "writeBoolean", "TINYINT": "writeByte", "SMALLINT": "writeShort"}
WRITES |= {"INT": "writeInt", "DATE": "writeInt", "BIGINT": "writeLong", "FLOAT": "writeFloat", "DOUBLE": "writeDouble"}


class JavaPartition:
    """One partition key of a type, in Java."""

    def __init__(self, jvm: Jvm, kind: str, legacy: bool) -> None:
        self.jvm = jvm
        types = jvm.paimon("types.DataTypeJsonParser")
        self.type = types.parseAtomicTypeSQLString(kind)
        self.kind = parse_type(kind, "p", "x")
        row_type = jvm.paimon("types.RowType").of(_array(jvm, jvm.paimon("types.DataType"), self.type))
        keys = _array(jvm, jvm.java("java.lang.String"), "f0")
        computer = jvm.paimon("utils.InternalRowPartitionComputer")
        self.computer = computer("__DEFAULT_PARTITION__", row_type, keys, legacy)

    def row(self, value: Any) -> Any:
        row = self.jvm.paimon("data.BinaryRow")(1)
        writer = self.jvm.paimon("data.BinaryRowWriter")(row)
        if self.kind.name == "DECIMAL":
            number = self.jvm.java("java.math.BigDecimal")(
                self.jvm.java("java.math.BigInteger")(str(value)), self.kind.second
            )
            decimal = self.jvm.paimon("data.Decimal").fromBigDecimal(number, self.kind.first, self.kind.second)
            writer.writeDecimal(0, decimal, self.kind.first)
        elif self.kind.name == "TIMESTAMP":
            moment = self.jvm.paimon("data.Timestamp").fromEpochMillis(*value)
            writer.writeTimestamp(0, moment, self.kind.first)
        elif self.kind.name == "STRING":
            writer.writeString(0, self.jvm.paimon("data.BinaryString").fromString(value))
        else:
            getattr(writer, WRITES.get(self.kind.name, "writeInt"))(0, value)
        writer.complete()
        return row

    def folder(self, row: Any) -> str:
        path: str = self.jvm.paimon("utils.PartitionPathUtils").generatePartitionPath(
            self.computer.generatePartValues(row)
        )
        return path

    def bytes(self, row: Any) -> bytes:
        return bytes(self.jvm.paimon("utils.SerializationUtils").serializeBinaryRow(row))


def _array(jvm: Jvm, kind: Any, *items: Any) -> Any:
    made = jvm.gateway.new_array(kind, len(items))
    for place, item in enumerate(items):
        made[place] = item
    return made


def _values(kind: str) -> Iterator[Any]:
    edges, draw = TYPES[kind]
    yield from edges
    chance = random.Random(f"{SEED} {kind}")
    for _ in range(COUNT):
        yield draw(chance)


def _is_longer(kind: str, ours: str, theirs: str) -> bool:
    """Tells whether Java wrote the same number with more digits than it needs, as it did up to version 18."""
    if kind not in ("FLOAT", "DOUBLE"):
        return False
    said = [float(each.removeprefix("/t/f0=").removesuffix("/bucket-0")) for each in (ours, theirs)]
    wide = {"FLOAT": "<f", "DOUBLE": "<d"}[kind]
    return len(ours) <= len(theirs) and struct.pack(wide, said[0]) == struct.pack(wide, said[1])


@pytest.mark.sampled(14)
@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("kind", TYPES)
def test_folders_are_those_that_java_makes(both: Paimon, kind: str, legacy: bool) -> None:
    java = JavaPartition(both.java, kind, legacy)
    options = {"partition.legacy-name": str(legacy).lower()}
    layout = Layout.of("/t", Schema(0, (("f0", java.kind),), options, "schema"))
    differing = []
    for value in _values(kind):
        row = java.row(value)
        ours, theirs = layout.bucket_folder(java.bytes(row), 0), f"/t/{java.folder(row)}bucket-0"
        if ours != theirs and not _is_longer(kind, ours, theirs):
            differing.append((value, ours, theirs))
    assert differing == []
