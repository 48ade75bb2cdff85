"""The partition of a file as Arrow columns: one type for all specs that the table ever had, as in Iceberg's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from firnline.formats.iceberg import fields, types
from firnline.ports.formats import State

_OF_TRANSFORM = {"year": "int", "month": "int", "hour": "int", "day": "date"}
_PARTS_OF_TIME = ("years", "months", "hours", "days")


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of the partition: its id, the name it has now, and Iceberg's type of its values."""

    id: int
    name: str
    type: str

    @property
    def read_as(self) -> pa.DataType:
        return types.read_as(self.type)

    @property
    def shown_as(self) -> pa.DataType:
        return types.shown_as(self.type)

    def shown(self, values: pa.Array) -> pa.Array:
        """Returns decoded values as the type that engines know."""
        return types.shown(self.type, values)


Names = Mapping[int, str]
"""Partition fields by id, with the name that manifests of one spec give them."""


def partition_fields(state: State) -> tuple[PartitionField, ...]:
    """Returns every field of any spec, in the order of ids; one that was renamed has its newest name."""
    columns = _column_types(state)
    found: dict[int, PartitionField] = {}
    for spec in _specs(state):
        for number, each in _numbered(spec, state.fence):
            name = fields.text(each, "name", state.fence)
            found[number] = PartitionField(number, name, _type_of(each, columns))
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


def _type_of(each: fields.Fields, columns: Mapping[int, str]) -> str:
    transform = str(each.get("transform"))
    plain = transform[:-1] if transform in _PARTS_OF_TIME else transform
    if plain.startswith("bucket"):
        return "int"
    return _OF_TRANSFORM.get(plain) or columns.get(int(each.get("source-id") or 0), "binary")


def _column_types(state: State) -> dict[int, str]:
    """Returns the types of primitive columns by id, of every schema; the newest says the last word."""
    current = state.document.get("schema")
    schemas = [current] if isinstance(current, dict) else []
    found: dict[int, str] = {}
    for schema in [*schemas, *fields.objects(state.document, "schemas", state.fence)]:
        found.update(_primitives(schema))
    return found


def _primitives(node: Any) -> Iterator[tuple[int, str]]:
    for each in node.get("fields") or () if isinstance(node, dict) else ():
        if isinstance(each, dict) and isinstance(each.get("type"), str):
            yield int(each["id"]), each["type"]
        elif isinstance(each, dict):
            yield from _primitives(each.get("type"))
