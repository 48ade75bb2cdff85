"""Small lakes that PyIceberg makes, for every kind of catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog as TheirCatalog
from pyiceberg.catalog.rest import RestCatalog as PyIcebergCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from harness.servers import Server

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


def five_snapshots(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns a new table of a REST server, of which firnline then knows as the catalog `lake`, from nowhere else."""
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder)
    for key, value in server.settings.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{key.upper()}", value)
    theirs = PyIcebergCatalog("lake", **server.settings)
    space = f"five_{uuid4().hex[:8]}"
    theirs.create_namespace(space)
    table = theirs.create_table(f"{space}.t", SCHEMA)
    for number in range(5):
        table.append(rows(number))
    return f"{space}.t"


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
