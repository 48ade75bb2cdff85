"""Small lakes that PyIceberg makes, for every kind of catalog."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog as TheirCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

TABLES = ("sales.events", "sales.orders", "eu.west.events", "ops.audit")
SCHEMA = Schema(NestedField(1, "id", LongType(), required=False))


def make_tables(catalog: TheirCatalog) -> None:
    """Makes four empty tables, and gives eu.west.events two snapshots."""
    for space in ("sales", "eu", "eu.west", "ops"):
        catalog.create_namespace_if_not_exists(space)
    for table in TABLES:
        catalog.create_table(table, SCHEMA)
    events = catalog.load_table("eu.west.events")
    for number in range(2):
        events.append(rows(number))


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64())})


def two_snapshots(location: str) -> dict[str, Any]:
    """Returns the metadata of a table with two snapshots, of which no file exists: catalogs do not look inside."""
    snapshots = [
        {"snapshot-id": each, "timestamp-ms": each, "sequence-number": each, "manifest-list": f"{location}/{each}"}
        for each in (1, 2)
    ]
    return {
        "format-version": 2,
        "table-uuid": "6f1f2a3c-0000-4000-8000-000000000001",
        "location": location,
        "last-updated-ms": 2,
        "last-sequence-number": 2,
        "schemas": [],
        "properties": {},
        "current-snapshot-id": 2,
        "refs": {"main": {"snapshot-id": 2, "type": "branch"}},
        "snapshots": snapshots,
        "snapshot-log": [{"snapshot-id": 2, "timestamp-ms": 2}],
        "metadata-log": [],
    }
