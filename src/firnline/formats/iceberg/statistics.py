"""What manifests tell of each file's columns: maps by the column's id as Iceberg stores them, and the same readable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from firnline.formats.avro.encoded import bytes_by_number, items_of, number_at, number_by_number
from firnline.formats.iceberg import fields, types
from firnline.ports.formats import State

_COUNTS = pa.map_(pa.int32(), pa.int64())
_BOUNDS = pa.map_(pa.int32(), pa.binary())
STATISTICS: Mapping[str, pa.DataType] = {
    "column_sizes": _COUNTS, "value_counts": _COUNTS, "null_value_counts": _COUNTS, "nan_value_counts": _COUNTS,
    "lower_bounds": _BOUNDS, "upper_bounds": _BOUNDS,
}  # fmt: skip
ARRAYS: Mapping[str, pa.DataType] = {
    **STATISTICS, "split_offsets": pa.list_(pa.int64()), "equality_ids": pa.list_(pa.int32()),
}  # fmt: skip
"""The fields of a file that are arrays in a manifest, with the type that engines show."""
_READABLE = {
    "column_size": "column_sizes", "value_count": "value_counts", "null_value_count": "null_value_counts",
    "nan_value_count": "nan_value_counts", "lower_bound": "lower_bounds", "upper_bound": "upper_bounds",
}  # fmt: skip


def decoded(kind: pa.DataType, encoded: pa.Array) -> pa.Array:
    """Returns a column of arrays from what a manifest has in their place. Raises CorruptAvro."""
    read: Callable[[bytes, int], tuple[Any, int]] = number_at
    if pa.types.is_map(kind):
        read = bytes_by_number if kind == _BOUNDS else number_by_number
    rows = [None if each is None else items_of(each, read, "statistics") for each in encoded.to_pylist()]
    absent = np.array([each is None for each in rows], dtype=bool)
    offsets = pa.array(np.cumsum([0, *(len(each or ()) for each in rows)]), pa.int32())
    items = list(chain.from_iterable(each or () for each in rows))
    mask = pa.array(absent) if absent.any() else None
    if not pa.types.is_map(kind):
        return pa.ListArray.from_arrays(offsets, pa.array(items, kind.value_type), mask=mask)
    keys, values = (
        pa.array([key for key, _ in items], pa.int32()),
        pa.array([each for _, each in items], kind.item_type),
    )
    return pa.MapArray.from_arrays(offsets, keys, values, mask=mask)


@dataclass(frozen=True, slots=True)
class StatisticsColumn:
    """A primitive column of the table: its id, its whole name, and Iceberg's type of its values."""

    id: int
    name: str
    type: str

    @property
    def kind(self) -> pa.DataType:
        return pa.struct([(name, self._type_of(name)) for name in _READABLE])

    def _type_of(self, name: str) -> pa.DataType:
        return types.shown_as(self.type) if name.endswith("bound") else pa.int64()

    def readable(self, said: Mapping[str, Sequence[Mapping[int, Any]]]) -> pa.Array:
        """Returns what the maps, by their names and row by row, say of this column."""
        parts = [self._part(name, [each.get(self.id) for each in said[source]]) for name, source in _READABLE.items()]
        return pa.StructArray.from_arrays(parts, names=list(_READABLE))

    def _part(self, name: str, values: Sequence[Any]) -> pa.Array:
        return types.of_single_values(self.type, values) if name.endswith("bound") else pa.array(values, pa.int64())


def statistics_columns(state: State) -> tuple[StatisticsColumn, ...]:
    """Returns the primitive columns of the current schema, in the order of names, as Iceberg shows them."""
    found = _primitives(_current_schema(state), ())
    return tuple(sorted(found, key=lambda each: each.name))


def _current_schema(state: State) -> Any:
    schemas = fields.objects(state.document, "schemas", state.fence)
    current = state.document.get("current-schema-id")
    return next((each for each in schemas if each.get("schema-id") == current), state.document.get("schema"))


def _primitives(node: Any, above: tuple[str, ...]) -> Iterator[StatisticsColumn]:
    for number, name, kind in _inside(node):
        named = (*above, name)
        if isinstance(kind, str):
            yield StatisticsColumn(number, ".".join(named), kind)
        else:
            yield from _primitives(kind, named)


def _inside(node: Any) -> Iterator[tuple[int, str, Any]]:
    """Yields what a type is made of, each with its id and the name that Iceberg gives it."""
    match node:
        case {"fields": [*parts]}:
            yield from ((int(each["id"]), str(each["name"]), each["type"]) for each in parts)
        case {"type": "list", "element-id": int(number), "element": kind}:
            yield number, "element", kind
        case {"type": "map", "key-id": int(key), "key": key_kind, "value-id": int(value), "value": kind}:
            yield key, "key", key_kind
            yield value, "value", kind


def readable_metrics(columns: Sequence[StatisticsColumn], found: Mapping[str, pa.Array]) -> pa.Array:
    """Returns the struct that has, for each column of the table, what the maps of each file say of it."""
    said = {name: [dict(each or ()) for each in found[name].to_pylist()] for name in STATISTICS}
    return pa.StructArray.from_arrays([each.readable(said) for each in columns], names=[each.name for each in columns])
