"""The files of a plan, runs and the ledger as DataFrames: what the plan says, for joins, and never less than that."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demo.backdate import SetClock, pyiceberg_clock
from firnline.errors import UnreadableMetadata
from firnline.lake import Lake, open_lake
from firnline.model.times import HOUR_MS
from firnline.ops.runs.plan import Planned
from firnline.sql.asking import asked_of, open_relation
from firnline.sql.faults import understanding
from firnline.sql.relations import TimeBounds

from .conftest import enter
from .lakes import SCHEMA, TABLE, Facts, at, build, expire, rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
ASKED: dict[str, Any] = {"older_than": at("2024-08-03"), "retain_last": 1}
OUTSIDE = date(2024, 7, 18)
DAMAGED = "ns.damaged"


@pytest.fixture
def facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Facts:
    """A lake whose table had for a day a file that lies in no folder of its own."""
    enter(tmp_path, monkeypatch)
    monkeypatch.setenv("FIRNLINE_CACHE", "off")
    facts = build(tmp_path)
    foreign = tmp_path / "elsewhere" / "one.parquet"
    foreign.parent.mkdir()
    pq.write_table(rows(OUTSIDE, 2), foreign)
    catalog = _catalog(tmp_path)
    table = catalog.load_table(TABLE)
    with pyiceberg_clock(SetClock(at("2024-08-02T01:00"))) as clock:
        table.add_files([f"file://{foreign}"])
        clock.now_ms += HOUR_MS
        table.delete(f"day = '{OUTSIDE}'")
    catalog.close()
    return facts


def _catalog(folder: Path) -> SqlCatalog:
    return SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")


@pytest.fixture
def lake(facts: Facts, spark: SparkSession) -> Lake:
    return open_lake(session=spark)


def told(frame: DataFrame) -> dict[str, set[tuple[str, str, int | None]]]:
    """Returns the files by their verdict."""
    found: dict[str, set[tuple[str, str, int | None]]] = {}
    for row in frame.collect():
        found.setdefault(row.verdict, set()).add((row.path, row.kind, row.size))
    return found


def of_threads(planned: Planned) -> Iterator[tuple[str, set[tuple[str, str, int | None]]]]:
    assert planned.survey is not None
    for verdict, batches in (("victim", planned.survey.victim_batches()), ("kept", planned.survey.kept_batches())):
        yield verdict, {(row["key"], row["kind"], row["size"]) for batch in batches for row in batch.to_pylist()}


def test_each_file_has_the_verdict_of_the_plan_that_threads_make(facts: Facts, lake: Lake) -> None:
    frame = lake.dataframes.files(TABLE, **ASKED)
    assert frame.columns == ["path", "kind", "size", "verdict", "reason"]
    found, view = told(frame), open_lake(engine="local").plan(TABLE, **ASKED)
    spared = found.pop("outside-location")
    assert found == dict(of_threads(view.planned))
    assert [path.rpartition("/")[2] for path, _, _ in spared] == ["one.parquet"]
    assert view.plan.spared["outside-location"].files == 1
    reasons = {row.verdict: row.reason for row in frame.select("verdict", "reason").distinct().collect()}
    assert reasons == {
        "kept": "is needed by what stays",
        "victim": "is needed only by what expires",
        "outside-location": "lies outside the table's own folders",
    }


def test_all_files_of_a_table_of_which_nothing_expires_are_kept(facts: Facts, lake: Lake) -> None:
    asked: dict[str, Any] = {"older_than": at("2020-01-01")}
    assert open_lake(engine="local").plan(TABLE, **asked).planned.survey is None
    found = told(lake.dataframes.files(TABLE, **asked))
    assert found.keys() == {"kept"}
    assert {kind for _, kind, _ in found["kept"]} >= {"data", "manifest", "manifest-list"}


@pytest.mark.full
def test_a_users_own_join_and_a_session_that_keeps_its_settings(facts: Facts, lake: Lake, spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        files = lake.dataframes.files(TABLE, **ASKED)
        mine = spark.createDataFrame([(facts.file, "physics")], "path string, team string")
        (row,) = files.join(mine, "path").select("team", "verdict").collect()
        assert tuple(row) == ("physics", "kept")
        assert lake.dataframes.runs(TABLE).count() == 0
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")


def test_a_unit_that_cannot_be_read_is_an_error_and_no_shorter_answer(facts: Facts, lake: Lake) -> None:
    files = lake.dataframes.files(TABLE, **ASKED)
    manifest = files.filter("kind = 'manifest' AND verdict = 'kept'").first()
    assert manifest is not None
    _dropped(files)
    Path(manifest.path.removeprefix("file://")).write_bytes(b"no manifest")
    for question in (files.select("size"), files.filter("verdict = 'victim'"), files.groupBy().agg(F.count("*"))):
        with pytest.raises(UnreadableMetadata, match=Path(manifest.path).name), understanding():
            question.collect()
    with pytest.raises(UnreadableMetadata, match=Path(manifest.path).name):
        lake.dataframes.files(TABLE, **ASKED)


def _dropped(files: DataFrame) -> None:
    """Takes from Spark what it holds, as it goes with an executor: the next question walks again."""
    files.sparkSession.catalog.clearCache()


def test_spark_holds_the_files_for_as_long_as_their_dataframe_lives(
    facts: Facts, lake: Lake, spark: SparkSession
) -> None:
    context: Any = spark.sparkContext
    gc.collect()
    before = set(context._jsc.getPersistentRDDs())
    files = lake.dataframes.files(TABLE, **ASKED)
    assert files.count() > 0
    assert len(set(context._jsc.getPersistentRDDs()) - before) == 1
    del files
    gc.collect()
    assert not set(context._jsc.getPersistentRDDs()) - before


@pytest.mark.full
def test_runs_and_the_ledger_join(facts: Facts, lake: Lake) -> None:
    expire()
    frames = lake.dataframes
    runs, ledger = frames.runs(), frames.ledger(TABLE)
    assert runs.columns == open_relation(asked_of({"what": "runs"}))[0].schema.names
    joined = ledger.join(runs, "run").select("snapshot_id", "state", "run_end", "lost_reasons").collect()
    assert facts.adding in {row.snapshot_id for row in joined}
    assert {(row.state, row.run_end) for row in joined} == {("done", "purged")}
    assert [row.run for row in frames.runs(TABLE).collect()] == [row.run for row in runs.collect()]


def test_runs_of_a_lake_with_a_damaged_table_are_an_error(
    facts: Facts, lake: Lake, capfd: pytest.CaptureFixture[str]
) -> None:
    catalog = _catalog(facts.folder)
    damaged = catalog.create_table(DAMAGED, SCHEMA)
    catalog.close()
    Path(damaged.metadata_location.removeprefix("file://")).write_text("{")
    with pytest.raises(UnreadableMetadata, match="damaged"), understanding():
        lake.dataframes.runs().collect()
    for what in ("runs", "snapshots"):
        with pytest.raises(UnreadableMetadata, match="damaged"):
            open_relation(asked_of({"what": what, "whole": "true"}))[0].pieces(TimeBounds())
    assert "left out" not in capfd.readouterr().err


WORKER = """
import os, sys
from firnline.sql.source import FirnlineSource
os.rmdir(os.getcwd())
print(FirnlineSource({"table": sys.argv[1], "what": "refs", "home": sys.argv[2]}).schema().fieldNames()[0])
"""


def test_a_session_that_was_started_in_a_folder_that_is_gone_still_finds_tables(facts: Facts, tmp_path: Path) -> None:
    """Its workers are in that folder, for as long as the session lives."""
    (tmp_path / "gone").mkdir()
    command = [sys.executable, "-c", WORKER, TABLE, str(facts.folder)]
    ran = subprocess.run(command, cwd=tmp_path / "gone", capture_output=True, text=True, check=False)
    assert ran.stdout == "name\n", ran.stderr
