"""A table by the name that `load` is given, in the session that a lake was opened with."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import firnline

from .lakes import TABLE, Facts

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture
def lake(spark: SparkSession, july: Facts) -> firnline.Lake:
    return firnline.open(session=spark)


def test_load_takes_a_table_by_its_name_and_by_its_location(lake: firnline.Lake, spark: SparkSession) -> None:
    by_name = spark.read.format("firnline").load(f"lake.{TABLE}").collect()
    by_option = spark.read.format("firnline").option("table", f"lake.{TABLE}").load().collect()
    state, _ = lake.policy(TABLE)
    (table,) = lake.tables()
    assert [each.snapshot_id for each in by_name] == [each.snapshot_id for each in by_option]
    assert {str(each.snapshot_id) for each in by_name if not each.expired} == {*state.graph.by_id}
    assert sum(each.expired for each in by_name) == len(list(lake.expired_snapshots(table))) > 0
    assert spark.read.format("firnline").option("what", "files").load(str(table)).count() > 0
    assert spark.read.format("firnline").option("what", "refs").load(state.fence).count() == 1


def test_two_tables_at_once_are_refused(lake: firnline.Lake, spark: SparkSession) -> None:
    reader = spark.read.format("firnline").option("table", f"lake.{TABLE}")
    assert reader.load(f"lake.{TABLE}").count() > 0, "the same twice is no contradiction"
    with pytest.raises(PySparkException, match="two tables are named"):
        spark.read.format("firnline").option("table", f"lake.{TABLE}").load("lake.ns.other").count()


def test_a_session_that_is_handed_in_is_the_one_that_works(lake: firnline.Lake, spark: SparkSession) -> None:
    assert lake.dataframes.files(TABLE).sparkSession is spark
    (answer,) = lake.sql("SELECT 7 AS n")
    assert answer.collect()[0].n == 7
    assert SparkSession.getActiveSession() is spark


def test_a_lake_on_threads_leaves_the_session_alone(spark: SparkSession, tmp_path: Path) -> None:
    untouched = spark.newSession()
    firnline.open(engine="local", session=untouched)
    with pytest.raises((PySparkException, Py4JJavaError), match="DATA_SOURCE_NOT_FOUND"):
        untouched.read.format("firnline").load("lake.ns.t").count()
