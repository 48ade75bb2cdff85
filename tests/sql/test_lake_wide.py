"""`firnline.snapshots` and `firnline.runs`: the whole lake in one query, whatever is wrong with one of its tables."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from firnline.sql.asking import asked_of, open_relation
from firnline.sql.relations import TimeBounds
from firnline.sql.source import register

from .conftest import enter
from .lakes import SCHEMA, TABLE, Facts, build, expire, rows

FIRNLINE = str(Path(sys.executable).with_name("firnline"))
DAMAGED, QUIET = "ns.damaged", "ns.quiet"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Facts]:
    """A lake of three tables: one that remembers July, a quiet one, and one whose metadata is damaged."""
    folder = tmp_path_factory.mktemp("lake").resolve()
    with pytest.MonkeyPatch.context() as patch:
        enter(folder, patch)
        facts = build(folder)
        catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
        catalog.create_table(QUIET, SCHEMA).append(rows(date(2024, 7, 1), 1))
        damaged = catalog.create_table(DAMAGED, SCHEMA)
        damaged.append(rows(date(2024, 7, 1), 1))
        catalog.close()
        expire()
        Path(damaged.metadata_location.removeprefix("file://")).write_text("{")
        yield facts


def read(what: str, columns: list[str] | None = None, bounds: TimeBounds | None = None) -> list[dict[str, Any]]:
    """Returns the rows, after a journey such as the one to an executor."""
    relation, version = open_relation(asked_of({"what": what}))
    assert version == ""
    names = columns or relation.schema.names
    pieces = list(relation.pieces(bounds or TimeBounds()))
    relation, pieces = pickle.loads(pickle.dumps((relation, pieces)))
    return [row for piece in pieces for each in relation.read(piece, names) for row in each.to_pylist()]


def test_snapshots_of_every_table_that_can_be_read(lake: Facts, capfd: pytest.CaptureFixture[str]) -> None:
    found = read("snapshots")
    by_table: dict[str, list[bool]] = {}
    for row in found:
        by_table.setdefault(row["table"], []).append(row["expired"])
    assert {name: sorted(flags) for name, flags in by_table.items()} == {
        f"lake.{TABLE}": [False, True, True, True, True],
        f"lake.{QUIET}": [False],
    }
    said = capfd.readouterr().err
    assert f"warning: lake.{DAMAGED} is left out" in said
    assert said.count("warning:") == 1


def test_columns_and_bounds_are_those_of_one_table(lake: Facts) -> None:
    assert sorted(row["table"] for row in read("snapshots", ["table"])) == [f"lake.{TABLE}"] * 5 + [f"lake.{QUIET}"]
    assert len(read("snapshots", ["snapshot_id"], TimeBounds(expired=True))) == 4


def test_a_damaged_history_hides_that_table_and_no_other(lake: Facts, capfd: pytest.CaptureFixture[str]) -> None:
    """It is met by the one who reads the list, after the table was opened."""
    (listed,) = Path(lake.folder).glob("warehouse/**/expired-snapshots-*.json")
    whole = listed.read_bytes()
    try:
        listed.write_bytes(whole[:-9])
        found = read("snapshots")
    finally:
        listed.write_bytes(whole)
    assert sorted(row["table"] for row in found if not row["expired"]) == [f"lake.{TABLE}", f"lake.{QUIET}"]
    assert f"lake.{TABLE} is left out: the history of expired snapshots cannot be read" in capfd.readouterr().err


def test_runs_of_every_table(lake: Facts) -> None:
    (found,) = read("runs")
    assert (found["table"], found["state"], found["kind"]) == (f"lake.{TABLE}", "done", "expiry")
    assert len(found["expired"]) == 4


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_one_query_over_the_lake(lake: Facts, spark: SparkSession) -> None:
    """By the command, in a process of its own: whose stderr is whose is the question."""
    query = (
        "SELECT s.table, count(*) AS commits, count(r.run) AS runs FROM firnline.snapshots s "
        "LEFT JOIN firnline.runs r ON array_contains(r.expired, s.snapshot_id) GROUP BY s.table ORDER BY s.table"
    )
    told = subprocess.run([FIRNLINE, "sql", query, "--output", "json"], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout) == [
        {"table": f"lake.{TABLE}", "commits": 5, "runs": 4},
        {"table": f"lake.{QUIET}", "commits": 1, "runs": 0},
    ]
    assert f"warning: lake.{DAMAGED} is left out" in told.stderr
    register(spark)
    frame = spark.read.format("firnline").option("what", "snapshots").option("home", str(lake.folder)).load()
    assert frame.count() == 6
