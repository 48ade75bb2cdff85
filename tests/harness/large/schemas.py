"""What the files of a large table say of themselves: Avro schemas and the head of the document, format version 2."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

_PARTITION = {"name": "part", "type": ["null", "int"], "default": None, "field-id": 1000}
_SPEC = [{"name": "part", "transform": "identity", "source-id": 1, "field-id": 1000}]


def document(location: str, uuid: str, columns: int) -> dict[str, Any]:
    """Returns the metadata document of a table without snapshots."""
    return {
        "format-version": 2,
        "table-uuid": uuid,
        "location": location,
        "last-column-id": columns,
        "schemas": [_schema(columns)],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": _SPEC}],
        "default-spec-id": 0,
        "last-partition-id": 1000,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "metadata-log": [],
    }


@cache
def manifest_metadata(columns: int) -> dict[str, str]:
    return {
        "schema": json.dumps(_schema(columns)),
        "schema-id": "0",
        "partition-spec": json.dumps(_SPEC),
        "partition-spec-id": "0",
        "format-version": "2",
        "content": "data",
    }


def _schema(columns: int) -> dict[str, Any]:
    first = [{"id": 1, "name": "part", "required": False, "type": "int"}]
    rest = [{"id": each, "name": f"c{each}", "required": False, "type": "string"} for each in range(2, columns + 1)]
    return {"type": "struct", "schema-id": 0, "fields": first + rest}


@cache
def entry_schema(columns: int) -> str:
    """Returns the schema of a manifest entry, as the entries of `row_bytes` are laid out."""
    counts = [("column_sizes", 108, 117), ("value_counts", 109, 119), ("null_value_counts", 110, 121)]
    file = [
        _field(134, "content", "int"),
        _field(100, "file_path", "string"),
        _field(101, "file_format", "string"),
        _field(102, "partition", {"type": "record", "name": "r102", "fields": [_PARTITION]}),
        _field(103, "record_count", "long"),
        _field(104, "file_size_in_bytes", "long"),
        *(_field(at, name, _pairs(key, "long"), True) for name, at, key in counts),
        _field(137, "nan_value_counts", _pairs(138, "long"), True),
        _field(125, "lower_bounds", _pairs(126, "bytes"), True),
        _field(128, "upper_bounds", _pairs(129, "bytes"), True),
        _field(131, "key_metadata", "bytes", True),
        _field(132, "split_offsets", {"type": "array", "items": "long", "element-id": 133}, True),
        _field(135, "equality_ids", {"type": "array", "items": "int", "element-id": 136}, True),
        _field(140, "sort_order_id", "int", True),
    ]
    fields = [
        _field(0, "status", "int"),
        _field(1, "snapshot_id", "long", True),
        _field(3, "sequence_number", "long", True),
        _field(4, "file_sequence_number", "long", True),
        _field(2, "data_file", {"type": "record", "name": "r2", "fields": file}),
    ]
    return json.dumps({"type": "record", "name": "manifest_entry", "fields": fields})


@cache
def list_schema() -> str:
    """Returns the schema of an entry of a manifest list."""
    summary = [_field(509, "contains_null", "boolean"), _field(518, "contains_nan", "boolean", True)]
    summary += [_field(510, "lower_bound", "bytes", True), _field(511, "upper_bound", "bytes", True)]
    partitions = {"type": "array", "items": {"type": "record", "name": "r508", "fields": summary}, "element-id": 508}
    numbers = [("manifest_length", 501, "long"), ("partition_spec_id", 502, "int"), ("content", 517, "int")]
    numbers += [("sequence_number", 515, "long"), ("min_sequence_number", 516, "long")]
    numbers += [("added_snapshot_id", 503, "long"), ("added_files_count", 504, "int")]
    numbers += [("existing_files_count", 505, "int"), ("deleted_files_count", 506, "int")]
    numbers += [("added_rows_count", 512, "long"), ("existing_rows_count", 513, "long")]
    numbers += [("deleted_rows_count", 514, "long")]
    fields = [_field(500, "manifest_path", "string"), *(_field(at, name, kind) for name, at, kind in numbers)]
    fields += [_field(507, "partitions", partitions, True), _field(519, "key_metadata", "bytes", True)]
    return json.dumps({"type": "record", "name": "manifest_file", "fields": fields})


def _field(at: int, name: str, kind: Any, optional: bool = False) -> dict[str, Any]:
    if optional:
        return {"name": name, "type": ["null", kind], "default": None, "field-id": at}
    return {"name": name, "type": kind, "field-id": at}


def _pairs(key: int, value: str) -> dict[str, Any]:
    """Returns a map with numbers for keys: Avro has only an array of pairs for it."""
    fields = [_field(key, "key", "int"), _field(key + 1, "value", value)]
    record = {"type": "record", "name": f"k{key}_v{key + 1}", "fields": fields}
    return {"type": "array", "logicalType": "map", "items": record}
