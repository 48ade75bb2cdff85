"""The Spark engine keeps the contract of every engine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import firnline
from firnline.errors import FirnlineError, StoreError, UnreadableMetadata
from firnline.formats.iceberg.table import IcebergFormat
from firnline.local.engine import LocalEngine
from firnline.model.files import File, FileKind
from firnline.ops.plan import roots
from firnline.ports.engines import Engine, Territory
from firnline.spark.describing import described
from firnline.spark.engine import SparkSurvey
from firnline.spark.folding import _damaged
from firnline.spark.opening import Opening
from firnline.spark.streaming import streamed
from firnline.stores.objects import ObjectStores
from firnline.testing.censuses import World
from firnline.testing.damage import remove
from firnline.testing.engines import EngineContract, a_long_life
from firnline.testing.engines_census import CensusContract
from firnline.testing.surveys import expected
from firnline.testing.surveys import survey as asked
from firnline.testing.tables import QuickFiles, SmallTable

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


class TestSparkEngine(EngineContract, CensusContract):
    @pytest.fixture
    def engine(self, spark: Engine) -> Engine:
        return spark


def test_a_policy_that_names_spark_gets_spark(tmp_path: Path, spark_session: SparkSession) -> None:
    table, _ = a_long_life(SmallTable(QuickFiles(), f"file://{tmp_path}/t"))
    table.publish()
    config = tmp_path / "firnline.yaml"
    config.write_text("engine: spark\n")
    there = firnline.open(str(config), session=spark_session).plan(table.location, now=table.now_ms)
    here = firnline.open(str(config), engine="local").plan(table.location, now=table.now_ms)
    assert (there.plan.engine, here.plan.engine) == ("spark", "local")
    assert there.plan.victims == here.plan.victims
    assert sorted(each["path"] for each in there.files()) == sorted(each["path"] for each in here.files())


FORMAT = IcebergFormat(ObjectStores())


def test_what_had_to_be_walked_again_and_could_not_be_read_ends_the_stream(
    tmp_path: Path, spark_session: SparkSession, spark: Engine
) -> None:
    """An executor takes what it held in memory with it. Walked again without the manifest that keeps them, files of
    the table would be on the list.
    """
    table = SmallTable(QuickFiles(), f"file://{tmp_path}/t")
    first = table.append(3)
    second = table.overwrite(table.live()[:1])
    state = FORMAT.load("table", table.publish())
    survey = spark.survey(roots(FORMAT, state, {str(first)}), FORMAT.expand, Territory(state.owned))
    assert isinstance(survey, SparkSurvey)
    survey.files.unpersist(blocking=True)
    for path in table.reachable(second):
        if table.made[path].kind is FileKind.MANIFEST:
            remove(path.removeprefix("file://"))
    with pytest.raises(UnreadableMetadata, match="manifest is missing"):
        list(survey.victim_batches())


def test_rows_that_are_not_as_many_as_were_counted_are_no_answer(spark_session: SparkSession) -> None:
    rows = spark_session.range(3)
    assert sum(map(len, streamed(rows, 3))) == 3
    for count in (2, 4):
        with pytest.raises(StoreError, match=f"counted {count} files, and then 3 came"):
            list(streamed(rows, count))


UNREADABLE = UnreadableMetadata("gone")
TOLD = {
    "a walk": Opening(FORMAT.expand, FileKind.MANIFEST, "look", 1)._unreadable("file:///m", UNREADABLE),
    "a walk that folds": _damaged(File(FileKind.MANIFEST, "file:///m"), UNREADABLE),
}


@pytest.mark.parametrize("told", TOLD.values(), ids=TOLD)
def test_what_cannot_be_read_is_told_to_every_part_of_a_shuffle(
    spark_session: SparkSession, told: pa.RecordBatch
) -> None:
    """A task that is run again tells it when parts are done already; those that are not must hear of it."""

    def any_told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        any_of_it = any(batch.column("error").null_count < len(batch) for batch in batches)
        yield pa.record_batch([[any_of_it]], names=["told"])

    names = spark_session.createDataFrame(pa.Table.from_batches([told.select(["identity", "error"])]))
    parts = names.repartition(16, "identity").mapInArrow(any_told, "told boolean").collect()
    assert [row.told for row in parts] == [True] * 16


def test_a_job_that_fails_is_told_in_one_line(spark_session: SparkSession) -> None:
    def broken(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ZeroDivisionError("on an executor")

    rows = spark_session.range(1).mapInArrow(broken, "id bigint")
    with pytest.raises(FirnlineError) as told, described(spark_session, "counting"):
        rows.collect()
    assert told.value.message == "Spark failed while counting: ZeroDivisionError: on an executor"
    assert told.value.hint
    with pytest.raises(FirnlineError, match="ZeroDivisionError"):
        list(streamed(rows, 1))


def test_spark_that_cannot_be_started_is_said_so(tmp_path: Path) -> None:
    ask = "from firnline.spark.session import session\nsession()"
    without_java = {**os.environ, "JAVA_HOME": str(tmp_path), "SPARK_MASTER": "local[1]"}
    ran = subprocess.run([sys.executable, "-c", ask], env=without_java, capture_output=True, text=True, check=False)
    assert "firnline.errors.UsageError" in ran.stderr
    assert "Spark cannot be started: " in ran.stderr


def test_a_session_whose_strings_have_offsets_of_64_bits_says_the_same(
    tmp_path: Path, spark_session: SparkSession, spark: Engine
) -> None:
    setting = "spark.sql.execution.arrow.useLargeVarTypes"
    table, expired = a_long_life(SmallTable(QuickFiles(), f"file://{tmp_path}/t"))
    table.publish()
    world = World(table)
    world.every_stray()
    spark_session.conf.set(setting, "true")
    try:
        assert asked(spark, table, expired, ObjectStores(), outside=True) == expected(table, expired)
        assert world.count(spark, ObjectStores()) == world.count(LocalEngine(), ObjectStores())
    finally:
        spark_session.conf.unset(setting)
