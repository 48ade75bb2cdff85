"""The Spark engine keeps the contract of every engine."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import firnline
from firnline.errors import FirnlineError, RefusedForSafety, StoreError, UnreadableMetadata, UsageError
from firnline.formats.iceberg.table import IcebergFormat
from firnline.local.engine import LocalEngine
from firnline.model.files import FileKind
from firnline.ops.runs.plan import roots
from firnline.ports.engines import OUTSIDE, Engine, Territory
from firnline.spark.engine import SparkEngine
from firnline.spark.judged import JUDGED_DDL, JudgedFiles
from firnline.spark.spool import Spool
from firnline.spark.spread import TASKS, spread_of
from firnline.spark.streaming import described, streamed
from firnline.spark.survey import Held, SparkSurvey, Sums
from firnline.stores.objects import ObjectStores
from firnline.testing.after_survey.looking import LookingContract
from firnline.testing.after_survey.reached import ReachedContract
from firnline.testing.censuses import CensusWorld
from firnline.testing.damage import remove
from firnline.testing.engines import EngineContract, a_long_life
from firnline.testing.engines_census import CensusContract
from firnline.testing.lakes.censuses import CensusesContract
from firnline.testing.lakes.engines import TogetherContract
from firnline.testing.surveys import expected
from firnline.testing.surveys import survey as asked
from firnline.testing.tables import QuickFiles, SmallTable

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.full_but(
    "test_victims_are_what_only_expired_snapshots_need",
    "test_each_unit_is_opened_once",
    "test_no_roots_give_an_empty_answer",
    "test_where_everything_expires_everything_goes",
    "test_a_unit_that_cannot_be_read_is_named",
    "test_a_store_that_fails_stops_everything_with_its_own_error",
    "test_an_engine_works_on_after_a_survey_that_failed",
    "test_every_survey_looks_for_itself",
    "test_victims_outside_the_table_are_spared",
    "test_what_another_table_needs_is_spared_however_it_spells_it",
    "test_a_puffin_stays_while_any_of_its_vectors_is_live_and_counts_once",
    "test_a_path_that_was_removed_and_added_again_stays",
    "test_statistics_stay_while_any_kept_snapshot_has_them",
    "test_a_unit_that_tables_share_is_opened_once",
    "test_a_unit_that_comes_too_late_ends_the_walk",
    "test_units_of_two_servers_are_not_one_whatever_they_are_called",
    "test_every_object_is_in_its_class",
    "test_metadata_that_no_root_reaches_is_shown_whatever_its_class",
    "test_what_two_tables_need_is_needed",
    "test_a_piece_that_cannot_be_listed_stops_the_listing",
    "test_a_unit_that_cannot_be_read_stops_the_census",
    "test_a_unit_that_cannot_be_read_stops_every_search",
    "test_a_listing_of_another_engine_is_refused",
    "test_what_is_missing_or_of_another_size_is_told_with_both_sizes",
    "test_every_needed_file_is_asked_for_once_and_no_other",
    "test_a_store_that_cannot_tell_stops_the_look",
    "test_a_survey_of_another_engine_is_refused",
    "test_what_a_walk_reached_is_found_by_its_path_and_nothing_else_is",
    "test_known_units_stay_closed_and_what_they_name_is_not_reached",
    "test_a_known_unit_may_be_gone_and_another_may_not",
)
@pytest.mark.sampled(3)
class TestSparkEngine(
    EngineContract, TogetherContract, CensusContract, CensusesContract, LookingContract, ReachedContract
):
    """Spellings and damage are judged by code that threads run as well, which are tried with all of them. For what is
    the long lane's, `make test` holds random tables and lakes against the threads' answers: `test_equal`, `test_lakes`,
    `test_lake_censuses`.
    """

    @pytest.fixture
    def engine(self, spark: Engine) -> Engine:
        return spark


def test_two_roads_to_one_folder_are_left_to_the_engine_that_compares_real_names(
    tmp_path: Path, spark_session: SparkSession
) -> None:
    table, _ = a_long_life(SmallTable(QuickFiles(), f"file://{tmp_path}/t"))
    table.publish()
    lake = firnline.open(engine="spark", session=spark_session)
    assert lake.plan(table.location, now=table.now_ms).plan.victims.all.files
    (tmp_path / "real").mkdir()
    (tmp_path / "t/metadata").rename(tmp_path / "real/metadata")
    (tmp_path / "t/metadata").symlink_to(tmp_path / "real/metadata")
    with pytest.raises(RefusedForSafety, match="is really") as refused:
        lake.plan(table.location, now=table.now_ms)
    assert 'firnline.open(engine="local")' in refused.value.hint
    assert firnline.open(engine="local").plan(table.location, now=table.now_ms).plan.spared[OUTSIDE].files


def test_a_folder_with_links_to_files_is_left_to_the_engine_that_compares_real_names(
    tmp_path: Path, spark_session: SparkSession
) -> None:
    table, _ = a_long_life(SmallTable(QuickFiles(), f"file://{tmp_path}/t"))
    table.publish()
    (tmp_path / "t/data/link.parquet").symlink_to("nothing")
    with pytest.raises(RefusedForSafety, match="t/data/ has links to files"):
        firnline.open(engine="spark", session=spark_session).plan(table.location, now=table.now_ms)
    assert firnline.open(engine="local").plan(table.location, now=table.now_ms).plan.victims.all.files


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
    survey.held.files.unpersist(blocking=True)
    for path in table.reachable(second):
        if table.made[path].kind is FileKind.MANIFEST:
            remove(path.removeprefix("file://"))
    with pytest.raises(UnreadableMetadata, match="manifest is missing"):
        list(survey.victim_batches())


def test_the_session_holds_nothing_of_a_survey_that_nobody_holds(
    tmp_path: Path, spark_session: SparkSession, spark: Engine
) -> None:
    """A plan is looked at and forgotten; the session may be somebody's who lives on for months."""
    held = spark_session.sparkContext._jsc.getPersistentRDDs  # type: ignore[attr-defined]
    before = held().size()
    table = SmallTable(QuickFiles(), f"file://{tmp_path}/t")
    first = table.append(3)
    state = FORMAT.load("table", table.publish())
    survey = spark.survey(roots(FORMAT, state, {str(first)}), FORMAT.expand, Territory(state.owned))
    assert held().size() == before + 1
    del survey
    gc.collect()
    assert held().size() == before


def test_rows_that_are_not_as_many_as_were_counted_are_no_answer(spark_session: SparkSession) -> None:
    rows = spark_session.range(3)
    assert sum(map(len, streamed(rows, 3))) == 3
    for count in (2, 4):
        with pytest.raises(StoreError, match=f"counted {count} files, and then 3 came"):
            list(streamed(rows, count))


def test_a_survey_of_which_fewer_files_come_than_were_counted_is_not_looked_at_nor_remembered(
    spark_session: SparkSession, spark: Engine, tmp_path: Path
) -> None:
    """What it held went with an executor, and was walked again. A file that nobody asked for would pass for sound, and
    one that is not remembered would not be spared.
    """
    path = tmp_path / "x"
    path.write_bytes(b"x")

    def judged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = JudgedFiles([False])
        key = pa.nulls(1, pa.string())
        said = {"identity": [f"file://{path}"], "key": key, "size": [1], "verdict": [0], "kind": [0]}
        list(files.add(0, pa.table(said)))
        yield from files.rest()

    held = Held(spark_session.range(0, 1, 1, 1).mapInArrow(judged, JUDGED_DDL), 1)
    for count in (1, 2):
        survey = SparkSurvey(held, 0, Sums({(0, 0): (count, count, 0)}), frozenset())
        refused = pytest.raises(StoreError, match="counted 2 files, and then 1 came")
        with nullcontext() if count == 1 else refused:
            assert not list(spark.faults(survey, ObjectStores()))
        with nullcontext() if count == 1 else refused:
            spark.reached().add(survey, 1)


def two_tables(spark_session: SparkSession, while_broken: Path) -> DataFrame:
    """Judged files of two tables, one each. As long as `while_broken` exists, jobs fail after as many as it says."""

    def judged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = JudgedFiles([False, False])
        for walk in range(2):
            key = pa.nulls(1, pa.string())
            said = {"identity": [f"s3://b/{walk}"], "key": key, "size": [1], "verdict": [1], "kind": [0]}
            list(files.add(walk, pa.table(said)))
        yield from files.rest()
        if while_broken.exists():
            if while_broken.read_text() == "0":
                raise OSError("the executor's disk is gone")
            while_broken.write_text("0")

    return spark_session.range(0, 1, 1, 1).mapInArrow(judged, JUDGED_DDL)


@pytest.mark.parametrize("after", ["0", "1"], ids=["while they are counted", "while they come"])
@pytest.mark.full
def test_files_that_could_not_be_brought_for_one_table_come_when_the_next_one_asks(
    tmp_path: Path, spark_session: SparkSession, after: str
) -> None:
    broken = tmp_path / "broken"
    broken.write_text(after)
    spool = Spool(two_tables(spark_session, broken), 2)
    with pytest.raises(FirnlineError, match="disk is gone"):
        list(spool.batches(0, 1, [0], 1, ""))
    broken.unlink()
    for walk in range(2):
        (batch,) = spool.batches(walk, 1, [0], 1, "")
        assert batch.column("key").to_pylist() == [f"s3://b/{walk}"]
    spool.close()


def test_a_disk_of_this_machine_that_takes_no_files_is_told_and_asked_again(
    tmp_path: Path, spark_session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several tables the first one is told; the next one may find room again."""
    spool = Spool(two_tables(spark_session, tmp_path / "never"), 2)
    room = tmp_path / "room"
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    with pytest.raises(StoreError, match="a disk of this machine") as refused:
        list(spool.batches(0, 1, [0], 1, ""))
    assert "TMPDIR" in refused.value.hint
    room.mkdir()
    assert [len(batch) for batch in spool.batches(1, 1, [0], 1, "")] == [1]
    spool.close()


@pytest.mark.parametrize("said", ["0", "-3", "many", "1.5"])
def test_a_setting_that_is_no_number_is_named(spark_session: SparkSession, said: str) -> None:
    spark_session.conf.set(TASKS, said)
    try:
        with pytest.raises(UsageError, match=f"{TASKS}.*{said}"):
            spread_of(spark_session, 10)
    finally:
        spark_session.conf.unset(TASKS)


def test_the_parts_of_a_walk_do_not_follow_the_session(spark_session: SparkSession) -> None:
    """A session with thousands of shuffle partitions is made for other work."""
    name = "spark.sql.shuffle.partitions"
    before = str(spark_session.conf.get(name))
    spark_session.conf.set(name, "2000")
    try:
        assert spread_of(spark_session, 10).parts == spark_session.sparkContext.defaultParallelism
        assert spread_of(spark_session, 10, 5_000_000).parts == 50
    finally:
        spark_session.conf.set(name, before)


def every_job(store: Any) -> list[Any]:
    jobs = store.jobsList(None)
    return [jobs.apply(place) for place in range(jobs.size())]


def test_the_jobs_of_a_walk_read_like_a_log(tmp_path: Path, spark_session: SparkSession) -> None:
    """And whoever lent his session finds his own description again."""
    table, expired = a_long_life(SmallTable(QuickFiles(), f"file://{tmp_path}/t"))
    context = spark_session.sparkContext
    store = context._jsc.sc().statusStore()  # type: ignore[attr-defined]
    before = max((each.jobId() for each in every_job(store)), default=-1)  # a store keeps the last thousand jobs only
    context.setJobDescription("somebody's own")
    try:
        answer = asked(SparkEngine(spark_session, of="lake.db.t"), table, expired, ObjectStores(), outside=True)
        assert context.getLocalProperty("spark.job.description") == "somebody's own"
    finally:
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]
    said = [each.description().get() for each in every_job(store) if each.jobId() > before]
    assert {re.sub(r"[0-9,]+", "N", each) for each in said} == {
        "firnline: walkingN and judging every file of lake.db.t",
        "firnline: bringing N files of lake.db.t",
    }
    assert f"firnline: bringing {len(answer.victims)} files of lake.db.t" in said


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


@pytest.mark.full
def test_a_session_whose_strings_have_offsets_of_64_bits_says_the_same(
    tmp_path: Path, spark_session: SparkSession, spark: Engine
) -> None:
    """In small batches, of which some have names in plain letters alone and others have not."""
    odd = {"useLargeVarTypes": "true", "maxRecordsPerBatch": "3"}
    table, expired = a_long_life(SmallTable(QuickFiles(), f"file://{tmp_path}/t"))
    table.publish()
    world = CensusWorld(table)
    world.every_stray()
    for number in range(3):
        world.stray(f"data/caf\u00e9-{number}.parquet")
    before = {name: spark_session.conf.get(f"spark.sql.execution.arrow.{name}") for name in odd}
    try:
        for name, value in odd.items():
            spark_session.conf.set(f"spark.sql.execution.arrow.{name}", value)
        assert asked(spark, table, expired, ObjectStores(), outside=True) == expected(table, expired)
        assert world.count(spark, ObjectStores()) == world.count(LocalEngine(), ObjectStores())
    finally:
        for name, value in before.items():
            spark_session.conf.set(f"spark.sql.execution.arrow.{name}", str(value))
