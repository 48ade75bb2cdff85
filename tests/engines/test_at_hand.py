"""`auto` uses Spark where it is at hand; a plan on a session of the user's own, whatever its settings, is the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import firnline
from firnline.app import engines
from firnline.app.engines import Engines
from firnline.local.delete import LocalDeleteMany
from firnline.ports.catalogs import TableName
from firnline.spark.delete import SparkDeleteMany
from firnline.spark.session import OURS, is_ours
from tests.neighbours.lakes import RealLake, real_lake

REALLY_ACTIVE = engines.is_active
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ODD: dict[str, dict[str, str]] = {
    "ansi": {"spark.sql.ansi.enabled": "true", "spark.sql.storeAssignmentPolicy": "STRICT"},
    "not ansi": {"spark.sql.ansi.enabled": "false", "spark.sql.storeAssignmentPolicy": "LEGACY"},
    "not adaptive": {"spark.sql.adaptive.enabled": "false"},
    "one partition": {"spark.sql.shuffle.partitions": "1"},
    "2,000 partitions": {"spark.sql.shuffle.partitions": "2000"},
    "far away": {"spark.sql.session.timeZone": "Pacific/Kiritimati"},
    "small batches": {"spark.sql.execution.arrow.maxRecordsPerBatch": "3"},
    "case counts": {"spark.sql.caseSensitive": "true", "spark.sql.parser.quotedRegexColumnNames": "true"},
    "no arrow": {"spark.sql.execution.arrow.pyspark.enabled": "false"},
}
STRICT = ("ansi", "not adaptive", "one partition", "far away", "small batches")
LAX = ("not ansi", "case counts", "no arrow")
TOGETHER = {" and ".join(names): {k: v for name in names for k, v in ODD[name].items()} for names in (STRICT, LAX)}
SETTINGS = {**TOGETHER, **(ODD if os.environ.get("FIRNLINE_FULL") else {})}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealLake]:
    with real_lake(tmp_path, monkeypatch) as made:
        made.create("t")
        for number in range(4):
            made.append("t", number)
        made.overwrite("t", 9)
        yield made


def planned(**opened: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {"retain_last": 1, "older_than": "2099-01-01T00:00:00Z", "now": "2100-01-01T00:00:00Z"}
    return firnline.open(**opened).plan("lake.db.t", **asked).to_json()


def without_engine(plan: dict[str, Any]) -> dict[str, Any]:
    return {**plan, "engine": None, "units_opened": None}


@pytest.mark.parametrize("named", SETTINGS)
@pytest.mark.sampled(1)
def test_a_plan_on_an_odd_session_is_the_same_plan(lake: RealLake, spark_session: SparkSession, named: str) -> None:
    odd = spark_session.newSession()
    for key, value in SETTINGS[named].items():
        odd.conf.set(key, value)
    alone = planned(engine="local")
    assert alone["victims"]["files"] > 0
    on_spark = planned(session=odd)
    assert on_spark["engine"] == "spark"
    assert without_engine(on_spark) == without_engine(alone)
    assert {key: odd.conf.get(key) for key in SETTINGS[named]} == SETTINGS[named], "a user's settings stay as they are"


def deletes(engine: str = "auto", session: SparkSession | None = None) -> type:
    return type(Engines(engine, session).delete_many(TableName("lake", ("db",), "t"), "s3://lake/t", 10))


def test_auto_takes_a_session_that_is_handed_in_or_active(
    lake: RealLake, spark_session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert planned()["engine"] == "local"
    assert deletes() is LocalDeleteMany
    assert deletes(session=spark_session) is SparkDeleteMany
    monkeypatch.setattr(engines, "is_active", REALLY_ACTIVE)
    assert planned()["engine"] == "spark"
    assert deletes() is SparkDeleteMany
    assert planned(engine="local")["engine"] == "local"


@pytest.mark.parametrize("variable", ["SPARK_MASTER", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"])
def test_auto_goes_where_the_environment_says_that_spark_is(
    lake: RealLake, spark_session: SparkSession, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "local[2]")
    assert planned(session=None)["engine"] == "spark"
    assert planned(engine="local")["engine"] == "local"


def test_a_session_that_is_only_active_is_the_one_of_every_thread_and_stays_as_it_was(
    lake: RealLake, spark_session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verbs of several tables work in threads, which have no active session of their own: one that they started would
    be this process's, with firnline's settings written over its owner's.
    """
    monkeypatch.setattr(engines, "is_active", REALLY_ACTIVE)
    mine = {
        "spark.sql.execution.arrow.maxRecordsPerBatch": "17",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.shuffle.partitions": "7",
    }
    before = {key: spark_session.conf.get(key) for key in mine}
    marked = spark_session.conf.get(OURS)
    assert marked is not None
    try:
        spark_session.conf.unset(OURS)
        for key, value in mine.items():
            spark_session.conf.set(key, value)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(deletes).result() is SparkDeleteMany
        (checked,) = firnline.open().several(["lake.db.*"]).check()
        assert checked.problem is None
        assert [row.n for answer in firnline.open().sql("SELECT 7 AS n") for row in answer.collect()] == [7]
        assert {key: spark_session.conf.get(key) for key in mine} == mine
        assert not is_ours(spark_session)
    finally:
        for key, value in {**before, OURS: marked}.items():
            spark_session.conf.set(key, value)
