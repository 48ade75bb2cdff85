"""A table by the name that `load` is given, in the session that a lake was opened with."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import LongType
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import firnline

from .conftest import enter
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


def test_a_session_that_is_handed_in_keeps_its_settings(spark: SparkSession, july: Facts) -> None:
    theirs = spark.newSession()
    for name, value in _THEIRS.items():
        theirs.conf.set(name, value)
    theirs.conf.unset("spark.firnline.started")
    theirs.active()
    try:
        lake = firnline.open(session=theirs)
        (answer,) = lake.sql(f"SELECT count(*) AS n FROM {TABLE} TIMESTAMP AS OF now()")
        assert answer.collect()[0].n == 5
        assert {name: theirs.conf.get(name) for name in _THEIRS} == _THEIRS
    finally:
        spark.active()


_THEIRS = {
    "spark.sql.session.timeZone": "America/St_Johns",
    "spark.sql.python.filterPushdown.enabled": "false",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
}


def test_a_table_is_read_by_its_own_columns_and_a_snapshot_by_those_that_it_had(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    uri = f"sqlite:///{tmp_path}/catalog.db"
    (tmp_path / ".pyiceberg.yaml").write_text(f"catalog:\n  lake:\n    type: sql\n    uri: {uri}\n")
    catalog = SqlCatalog("lake", uri=uri, warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("ns")
    table = catalog.create_table("ns.t", pa.schema([("id", pa.int64()), ("old", pa.int64()), ("gone", pa.int64())]))
    table.append(pa.table({"id": [1], "old": [2], "gone": [3]}))
    taken = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(taken, "then").create_branch(taken, "side").commit()
    with table.update_schema() as change:
        change.add_column("fresh", LongType()).rename_column("old", "renamed").delete_column("gone")
    lake = firnline.open(session=spark)

    def asked(text: str) -> list[dict[str, object]]:
        return [row.asDict() for (frame,) in [lake.sql(text)] for row in frame.collect()]

    now, then = {"id": 1, "renamed": 2, "fresh": None}, {"id": 1, "old": 2, "gone": 3}
    assert asked("SELECT * FROM ns.t") == [now]
    assert asked("SELECT fresh, renamed FROM ns.t") == [{"fresh": None, "renamed": 2}]
    assert [asked(f"SELECT * FROM ns.t VERSION AS OF '{branch}'") for branch in ("main", "side")] == [[now], [now]]
    assert [asked(f"SELECT * FROM ns.t VERSION AS OF {name}") for name in ("'then'", taken)] == [[then], [then]]
    assert asked("SELECT * FROM ns.t TIMESTAMP AS OF now()") == [then]
    assert [row["col_name"] for row in asked("DESCRIBE ns.t")] == ["id", "renamed", "fresh"]
    assert asked("SELECT sum(i) AS s FROM ns.t AS a(i, r, f)") == [{"s": 1}]
    assert asked("SELECT /*+ BROADCAST(t) */ t.id FROM ns.t TABLESAMPLE (100 PERCENT) WHERE id = 1") == [{"id": 1}]
    assert asked("SELECT ns.t.* FROM ns.t") == [now]


def test_a_lake_on_threads_leaves_the_session_alone(spark: SparkSession, tmp_path: Path) -> None:
    untouched = spark.newSession()
    firnline.open(engine="local", session=untouched)
    with pytest.raises((PySparkException, Py4JJavaError), match="DATA_SOURCE_NOT_FOUND"):
        untouched.read.format("firnline").load("lake.ns.t").count()
