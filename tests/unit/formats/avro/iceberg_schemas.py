"""The schemas that Iceberg writes for v2 manifests and manifest lists, and entries as a writer would fill them."""

from __future__ import annotations

import random
import struct
from typing import Any

Json = Any


def optional(inner: Json, field_id: int, name: str) -> Json:
    return {"name": name, "type": ["null", inner], "default": None, "field-id": field_id}


def required(inner: Json, field_id: int, name: str) -> Json:
    return {"name": name, "type": inner, "field-id": field_id}


def keyed(key_id: int, value_id: int, value: str) -> Json:
    """A map whose keys are not strings: an array of pairs."""
    pair = {
        "type": "record",
        "name": f"k{key_id}_v{value_id}",
        "fields": [required("int", key_id, "key"), required(value, value_id, "value")],
    }
    return {"type": "array", "items": pair, "logicalType": "map"}


PARTITION = {
    "type": "record",
    "name": "r102",
    "fields": [optional({"type": "int", "logicalType": "date"}, 1000, "day"), optional("string", 1001, "region")],
}

DATA_FILE = {
    "type": "record",
    "name": "r2",
    "fields": [
        required("int", 134, "content"),
        required("string", 100, "file_path"),
        required("string", 101, "file_format"),
        required(PARTITION, 102, "partition"),
        required("long", 103, "record_count"),
        required("long", 104, "file_size_in_bytes"),
        optional(keyed(117, 118, "long"), 108, "column_sizes"),
        optional(keyed(119, 120, "long"), 109, "value_counts"),
        optional(keyed(121, 122, "long"), 110, "null_value_counts"),
        optional(keyed(138, 139, "long"), 137, "nan_value_counts"),
        optional(keyed(126, 127, "bytes"), 125, "lower_bounds"),
        optional(keyed(129, 130, "bytes"), 128, "upper_bounds"),
        optional("bytes", 131, "key_metadata"),
        optional({"type": "array", "items": "long", "element-id": 133}, 132, "split_offsets"),
        optional({"type": "array", "items": "int", "element-id": 136}, 135, "equality_ids"),
        optional("int", 140, "sort_order_id"),
    ],
}

MANIFEST_ENTRY = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        required("int", 0, "status"),
        optional("long", 1, "snapshot_id"),
        optional("long", 3, "sequence_number"),
        optional("long", 4, "file_sequence_number"),
        required(DATA_FILE, 2, "data_file"),
    ],
}

FIELD_SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": [
        required("boolean", 509, "contains_null"),
        optional("boolean", 518, "contains_nan"),
        optional("bytes", 510, "lower_bound"),
        optional("bytes", 511, "upper_bound"),
    ],
}

MANIFEST_FILE = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        required("string", 500, "manifest_path"),
        required("long", 501, "manifest_length"),
        required("int", 502, "partition_spec_id"),
        required("int", 517, "content"),
        required("long", 515, "sequence_number"),
        required("long", 516, "min_sequence_number"),
        required("long", 503, "added_snapshot_id"),
        required("int", 504, "added_files_count"),
        required("int", 505, "existing_files_count"),
        required("int", 506, "deleted_files_count"),
        required("long", 512, "added_rows_count"),
        required("long", 513, "existing_rows_count"),
        required("long", 514, "deleted_rows_count"),
        optional({"type": "array", "items": FIELD_SUMMARY, "element-id": 508}, 507, "partitions"),
        optional("bytes", 519, "key_metadata"),
    ],
}


def bounds(rng: random.Random, columns: int) -> list[dict[str, Any]]:
    """Bounds of columns of each kind in turn, serialised as Iceberg does: long, int, double, timestamp, string."""
    kinds = (
        lambda: struct.pack("<q", rng.randrange(10**9)),
        lambda: struct.pack("<i", rng.randrange(10**5)),
        lambda: struct.pack("<d", round(rng.random() * 1000, 2)),
        lambda: struct.pack("<q", 1_767_225_600_000_000 + rng.randrange(86_400_000_000)),
        f"customer-{rng.randrange(10**7):07d}".encode,
    )
    return [{"key": number + 1, "value": kinds[number % len(kinds)]()} for number in range(columns)]


def entry(rng: random.Random, columns: int = 20) -> dict[str, Any]:
    """One manifest entry with statistics for so many columns."""
    rows = rng.randrange(100_000, 5_000_000)

    def per_column(value: Any) -> list[dict[str, Any]]:
        return [{"key": number + 1, "value": value()} for number in range(columns)]

    return {
        "status": rng.randrange(3),
        "snapshot_id": rng.choice([None, rng.getrandbits(62)]),
        "sequence_number": rng.randrange(5000),
        "file_sequence_number": None,
        "data_file": {
            "content": rng.choice([0, 0, 0, 1, 2]),
            "file_path": f"s3://lake/warehouse/db.db/events/data/day=2026-01-01/{rng.getrandbits(128):032x}.parquet",
            "file_format": "PARQUET",
            "partition": {"day": rng.randrange(20_000), "region": rng.choice([None, "eu-central-1"])},
            "record_count": rows,
            "file_size_in_bytes": rng.randrange(1 << 20, 1 << 29),
            "column_sizes": per_column(lambda: rng.randrange(1 << 24)),
            "value_counts": per_column(lambda: rows),
            "null_value_counts": per_column(lambda: rng.choice([0, 0, rng.randrange(rows)])),
            "nan_value_counts": per_column(lambda: 0),
            "lower_bounds": bounds(rng, columns),
            "upper_bounds": bounds(rng, columns),
            "key_metadata": None,
            "split_offsets": [4, 1 << 27],
            "equality_ids": None,
            "sort_order_id": 0,
        },
    }


def manifest(rng: random.Random) -> dict[str, Any]:
    """One entry of a manifest list."""
    counts = {
        f"{what}_{unit}_count": rng.randrange(10_000)
        for what in ("added", "existing", "deleted")
        for unit in ("files", "rows")
    }
    summary = {"contains_null": False, "contains_nan": None, "lower_bound": b"\0\1\2\3", "upper_bound": b"\4\5\6\7"}
    return counts | {
        "manifest_path": f"s3://lake/warehouse/db.db/events/metadata/{rng.getrandbits(128):032x}-m0.avro",
        "manifest_length": rng.randrange(1 << 23),
        "partition_spec_id": rng.randrange(3),
        "content": rng.randrange(2),
        "sequence_number": rng.randrange(5000),
        "min_sequence_number": rng.randrange(5000),
        "added_snapshot_id": rng.getrandbits(62),
        "partitions": [summary, summary],
        "key_metadata": None,
    }
