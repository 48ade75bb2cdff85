"""Readers without a catalog: the page's own blocks read a published table of which no catalog is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.expressions import EqualTo

import firnline
from firnline.cli.main import run
from firnline.formats.iceberg.runtime import PACKAGE
from harness.servers.jars import for_spark
from tests.docs.pages import DOCS, blocks
from tests.neighbours.lakes import COLUMN, RealLake

PAGE = DOCS / "guides" / "pointers.md"
FOLDER = "s3://lake/sales/customer"
ROWS = [1, 3]


def block(word: str) -> str:
    """Returns the one block of the page that has this word."""
    (found,) = [each for each in blocks(PAGE, "python") if word in each]
    return found


@pytest.fixture
def place(lake: RealLake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """The folder of a published table. A file of an older snapshot lies there, too, and its catalog is gone."""
    monkeypatch.chdir(lake.folder)
    Path("firnline.yaml").write_text("pointers: identifier")
    lake.create("t")
    for number in (1, 2, 3):
        lake.append("t", number)
    lake.table("t").delete(EqualTo(COLUMN, 2))
    found = lake.table("t").location()
    assert run(["pointers", "sync"]) == 0
    capsys.readouterr()
    lake.catalog.close()
    for name in ("catalog.db", ".pyiceberg.yaml"):
        Path(name).unlink()
    return found.removeprefix("file://")


def opened(place: str) -> str:
    """Returns the block that finds the metadata, with this folder in place of the page's."""
    found = block("open_path")
    assert FOLDER in found
    return found.replace(FOLDER, place)


def test_the_command_and_the_function_find_the_same_file(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pointers", "resolve", place, "--json"]) == 0
    names: dict[str, Any] = {}
    exec(opened(place), names)
    assert json.loads(capsys.readouterr().out)["metadata"] == names["metadata"]
    assert (firnline.open_path(place).catalog, Path("catalog.db").exists()) == (None, False)


def test_pyiceberg_and_datafusion(place: str) -> None:
    names: dict[str, Any] = {}
    exec(opened(place) + block("StaticTable"), names)
    assert sorted(names["rows"].column(COLUMN).to_pylist()) == ROWS
    exec(block("datafusion"), names)
    assert sorted(names["rows"].to_pydict()[COLUMN]) == ROWS


@pytest.mark.full
@pytest.mark.spark
def test_spark(place: str) -> None:
    reading = block("SparkSession")
    assert f'"{PACKAGE}"' in reading
    jars = reading.replace(PACKAGE, for_spark([PACKAGE])).replace("spark.jars.packages", "spark.jars")
    telling = f"print([row.{COLUMN} for row in rows.collect()], rows._jdf.queryExecution().toString())"
    around = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-c", opened(place) + jars + telling]
    told = subprocess.run(command, env=around, capture_output=True, text=True, timeout=300, check=False)
    assert told.returncode == 0, told.stderr[-3_000:]
    rows, _, plan = told.stdout.partition("]")
    assert sorted(json.loads(rows + "]")) == ROWS
    assert f"IcebergScan(table={firnline.open_path(place).metadata}" in plan


def test_no_other_block_is_left() -> None:
    """Every block of the page is one of those that run here."""
    known = [block(word) for word in ("open_path", "StaticTable", "SparkSession", "datafusion")]
    assert blocks(PAGE, "python") == known
