"""The partition of a file as Arrow columns: one type for all specs that the table ever had, as in Iceberg's tables."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from firnline.formats.iceberg import fields
from firnline.ports.formats import State

_OF_TRANSFORM = {"year": "int", "month": "int", "hour": "int", "day": "date"}
_PARTS_OF_TIME = ("years", "months", "hours", "days")
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_WHOLE, _REAL, _RAW = pa.int64(), pa.float64(), pa.binary()
_READ = {
    "boolean": pa.bool_(), "int": _WHOLE, "long": _WHOLE, "float": _REAL, "double": _REAL, "string": pa.string(),
    "date": _WHOLE, "time": _WHOLE, "timestamp": _WHOLE, "timestamptz": _WHOLE,
    "timestamp_ns": _WHOLE, "timestamptz_ns": _WHOLE,
}  # fmt: skip
"""What the decoder is asked for: the widest, because a column may have been promoted since a manifest was written."""
_SHOWN = {
    **_READ, "int": pa.int32(), "float": pa.float32(), "date": pa.date32(), "uuid": pa.string(),
    "timestamp": pa.timestamp("us"), "timestamptz": pa.timestamp("us", "UTC"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of the partition: its id, the name it has now, and Iceberg's type of its values."""

    id: int
    name: str
    type: str

    @property
    def read_as(self) -> pa.DataType:
        return _READ.get(self.type, _RAW)

    @property
    def shown_as(self) -> pa.DataType:
        decimal = _DECIMAL.fullmatch(self.type)
        return pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else _SHOWN.get(self.type, _RAW)

    def shown(self, values: pa.Array) -> pa.Array:
        """Returns decoded values as the type that engines know."""
        decimal = _DECIMAL.fullmatch(self.type)
        if decimal:
            return pa.array([_decimal(each, int(decimal[2])) for each in values.to_pylist()], self.shown_as)
        if self.type == "uuid":
            texts = [None if each is None else str(uuid.UUID(bytes=each)) for each in values.to_pylist()]
            return pa.array(texts, pa.string())
        narrow = values.cast(pa.int32()) if self.type == "date" else values
        return narrow.cast(self.shown_as)


def _decimal(raw: bytes | None, scale: int) -> Decimal | None:
    return None if raw is None else Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-scale)


Names = Mapping[int, str]
"""Partition fields by id, with the name that manifests of one spec give them."""


def partition_fields(state: State) -> tuple[PartitionField, ...]:
    """Returns every field of any spec, in the order of ids; one that was renamed has its newest name."""
    types = _column_types(state)
    found: dict[int, PartitionField] = {}
    for spec in _specs(state):
        for number, each in _numbered(spec, state.fence):
            name = fields.text(each, "name", state.fence)
            found[number] = PartitionField(number, name, _type_of(each, types))
    return tuple(found[number] for number in sorted(found))


def names_by_spec(state: State) -> dict[int, Names]:
    """Returns, for each spec, its fields as they are called inside manifests."""
    return {
        fields.whole_or_none(spec, "spec-id", state.fence) or 0: {
            number: avro_name(fields.text(each, "name", state.fence)) for number, each in _numbered(spec, state.fence)
        }
        for spec in _specs(state)
    }


def avro_name(name: str) -> str:
    """Returns the name that writers use in Avro, which allows fewer characters."""
    first, rest = name[0], name[1:]
    start = first if _is_letter(first) else f"_{first}" if first.isdigit() else _escaped(first)
    return start + "".join(each if _is_letter(each) or each.isdigit() else _escaped(each) for each in rest)


def _is_letter(character: str) -> bool:
    return character.isalpha() or character == "_"


def _escaped(character: str) -> str:
    return f"_x{ord(character):X}"


def _specs(state: State) -> list[fields.Fields]:
    """Returns the specs, oldest first. Version 1 may have only the fields of one."""
    specs = fields.objects(state.document, "partition-specs", state.fence)
    alone: fields.Fields = {"spec-id": 0, "fields": state.document.get("partition-spec")}
    return sorted(specs, key=lambda spec: int(spec["spec-id"])) if specs else [alone]


def _numbered(spec: fields.Fields, where: str) -> Iterator[tuple[int, fields.Fields]]:
    """Yields the fields with their ids. Where version 1 wrote none they count from 1000."""
    for place, each in enumerate(fields.objects(spec, "fields", where)):
        number = fields.whole_or_none(each, "field-id", where)
        yield 1000 + place if number is None else number, each


def _type_of(each: fields.Fields, types: Mapping[int, str]) -> str:
    transform = str(each.get("transform"))
    plain = transform[:-1] if transform in _PARTS_OF_TIME else transform
    if plain.startswith("bucket"):
        return "int"
    return _OF_TRANSFORM.get(plain) or types.get(int(each.get("source-id") or 0), "binary")


def _column_types(state: State) -> dict[int, str]:
    """Returns the types of primitive columns by id, of every schema; the newest says the last word."""
    current = state.document.get("schema")
    schemas = [current] if isinstance(current, dict) else []
    types: dict[int, str] = {}
    for schema in [*schemas, *fields.objects(state.document, "schemas", state.fence)]:
        types.update(_primitives(schema))
    return types


def _primitives(node: Any) -> Iterator[tuple[int, str]]:
    for each in node.get("fields") or () if isinstance(node, dict) else ():
        if isinstance(each, dict) and isinstance(each.get("type"), str):
            yield int(each["id"]), each["type"]
        elif isinstance(each, dict):
            yield from _primitives(each.get("type"))
