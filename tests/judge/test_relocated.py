"""What Spark and PyIceberg read from relocated tables, once the live ones are gone: at every snapshot the same rows."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from firnline.formats.iceberg.runtime import PACKAGE
from firnline.model.files import FileKind
from firnline.testing.folders import quick
from harness.servers.jars import for_spark

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.full, pytest.mark.xdist_group("relocated")]
WRITER = Path(__file__).with_name("relocated_tables.py")
TABLES = ("positions", "equality", "vectors", "old")
LINEAGE = ("_row_id", "_last_updated_sequence_number")


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as slow, quick(Path(slow)) as folder:
        answer = folder / "answer.json"
        subprocess.run([sys.executable, str(WRITER), str(folder), for_spark([PACKAGE]), str(answer)], check=True)
        assert not (folder / "live").exists()
        yield json.loads(answer.read_bytes())


@pytest.mark.parametrize("table", TABLES)
def test_spark_reads_the_same_rows_at_every_snapshot(told: dict[str, Any], table: str) -> None:
    found = told[table]
    assert len(found["before"]) >= 3
    assert found["cold"] == found["before"]


def test_the_tables_have_all_kinds_of_files(told: dict[str, Any]) -> None:
    assert {kind for found in told.values() for kind in found["kinds"]} == {
        FileKind.DATA, FileKind.POSITION_DELETES, FileKind.EQUALITY_DELETES, FileKind.DELETION_VECTORS,
        FileKind.MANIFEST, FileKind.MANIFEST_LIST, FileKind.STATISTICS, FileKind.PARTITION_STATISTICS,
    }  # fmt: skip


@pytest.mark.parametrize("table", ["positions", "equality"])
def test_deletes_that_name_the_live_files_would_show_deleted_rows_again(told: dict[str, Any], table: str) -> None:
    """So that a green test above says something."""
    [(newest, careless)] = told[table]["careless"].items()
    assert len(careless) > len(told[table]["before"][newest])


def test_pyiceberg_reads_position_deletes(told: dict[str, Any]) -> None:
    before = told["positions"]["before"]
    found = {
        each: rows_at(told["positions"]["cold table"], each) for each in list(before)[:5]
    }  # then come Avro deletes
    assert found == {each: before[each] for each in found}


def test_pyiceberg_goes_by_the_footers_of_deletion_vectors(told: dict[str, Any]) -> None:
    before = {each: without_lineage(rows) for each, rows in told["vectors"]["before"].items()}
    assert {each: rows_at(told["vectors"]["cold table"], each) for each in before} == before
    newest = list(before)[-1]
    assert len(rows_at(told["vectors"]["careless table"], newest)) > len(before[newest])


def rows_at(table: str, snapshot: str) -> list[dict[str, Any]]:
    opened = StaticTable.from_metadata(f"{table}/metadata/v1.metadata.json")
    return sorted(opened.scan(snapshot_id=int(snapshot)).to_arrow().to_pylist(), key=str)


def without_lineage(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(({key: row[key] for key in row if key not in LINEAGE} for row in rows), key=str)
