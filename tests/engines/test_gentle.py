"""Executors keep to one pace: each task has its part of what a store may be asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from pyspark.sql import SparkSession

from firnline.app.engines import Engines
from firnline.app.places import places_of
from firnline.formats.iceberg.expand import IcebergExpand
from firnline.formats.iceberg.table import IcebergFormat
from firnline.ops.runs.plan import roots
from firnline.policy.limits import StoreLimits
from firnline.policy.parse import parse_policy
from firnline.ports.catalogs import TableName
from firnline.ports.delete import Doomed, Fate, always
from firnline.ports.engines import Territory
from firnline.ports.listings import KeyRange
from firnline.spark import slots
from firnline.spark.delete import SparkDeleteMany
from firnline.spark.engine import SparkEngine
from firnline.spark.slots import task_slots
from firnline.spark.spread import side_by_side, spread_of
from firnline.stores.delete import ObjectDelete
from firnline.stores.objects import ObjectStores
from firnline.stores.ranges import ObjectRanges
from firnline.stores.throttle import Lanes, Throttle
from firnline.testing.engines import a_long_life
from firnline.testing.surveys import expected, found
from firnline.testing.tables import QuickFiles, SmallTable

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
SHARES: list[tuple[str, int]] = []
"""What was divided here, on the driver, and into how many parts."""


@pytest.fixture(autouse=True)
def none_yet() -> None:
    SHARES.clear()


@dataclass(frozen=True, slots=True)
class WatchedExpand(IcebergExpand):
    def share(self, parts: int) -> IcebergExpand:
        SHARES.append(("expand", parts))
        return IcebergExpand.share(self, parts)


class WatchedRanges(ObjectRanges):
    def share(self, parts: int) -> ObjectRanges:
        SHARES.append(("ranges", parts))
        return super().share(parts)


def limits(text: str) -> StoreLimits:
    return StoreLimits.of(parse_policy(text).stores)


def test_a_walk_through_a_paced_store_says_the_same_and_shares_the_pace(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    table, expired = a_long_life(SmallTable(QuickFiles(), f"file://{tmp_path}/t"))
    said = f"stores: {{{tmp_path}: {{reads-per-second: 100000, reads-at-once: 64}}}}"
    store = places_of(parse_policy(said)).stores.open({})
    table_format = IcebergFormat(store)
    state = table_format.load("t", table.publish())
    survey = SparkEngine(spark_session).survey(
        roots(table_format, state, {str(each) for each in expired}), WatchedExpand(store), Territory(None)
    )
    assert found(survey) == expected(table, expired)
    assert [("expand", spark_session.sparkContext.defaultParallelism)] * 2 == SHARES


def test_a_listing_shares_the_pace(spark_session: SparkSession, tmp_path: Path) -> None:
    pieces = []
    for number in range(12):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "x").write_bytes(b"x")
        pieces.append(KeyRange(f"{tmp_path}/{number}"))
    ranges = WatchedRanges(throttle=Throttle(Lanes(limits(f"stores: {{{tmp_path}: {{reads-per-second: 100000}}}}"))))
    assert SparkEngine(spark_session).list(pieces, ranges).all.files == 12
    assert [("ranges", spark_session.sparkContext.defaultParallelism)] == SHARES


def test_a_job_of_one_task_leaves_to_others_what_is_theirs(spark_session: SparkSession, tmp_path: Path) -> None:
    """Jobs of several tables run side by side: with its whole pace each, they would be asked for more than was said."""
    table, slots_there = SmallTable(QuickFiles(), f"file://{tmp_path}/t"), spark_session.sparkContext.defaultParallelism
    assert slots_there > 1
    table.append(1)
    store = places_of(parse_policy(f"stores: {{{tmp_path}: {{reads-per-second: 100000}}}}")).stores.open({})
    table_format = IcebergFormat(store)
    state = table_format.load("t", table.publish())
    SparkEngine(spark_session).survey(roots(table_format, state, frozenset()), WatchedExpand(store), Territory(None))
    SparkEngine(spark_session).list([KeyRange(f"{tmp_path}/t")], WatchedRanges())
    assert [*[("expand", slots_there)] * 2, ("ranges", slots_there)] == SHARES


def test_jobs_that_read_come_one_after_the_other_where_it_was_said_how_many_requests(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    """Each has that many under way: two at a time would have twice as many."""
    engines = Engines("spark", spark_session, limits=limits(f"stores: {{{tmp_path}: {{reads-at-once: 1}}}}"))
    table, taken = SmallTable(QuickFiles(), f"file://{tmp_path}/t"), list[bool]()
    table.append(2)
    table_format = IcebergFormat(ObjectStores())
    state = table_format.load("t", table.publish())
    engine, other = (engines.spark(name, f"{tmp_path}/{name}") for name in ("t", "other"))

    class Looking(ObjectStores):
        def share(self, parts: int) -> ObjectStores:
            taken.append(engines._reading.locked())
            return ObjectStores()

    class Listing(ObjectRanges):
        def share(self, parts: int) -> ObjectRanges:
            taken.append(engines._reading.locked())
            return ObjectRanges()

    survey = engine.survey(roots(table_format, state, frozenset()), table_format.expand, Territory(None))
    assert not list(engine.faults(survey, Looking()))
    assert other.list([KeyRange(state.location)], Listing()).all.files
    assert taken == [True, True]
    assert not engines._reading.locked()
    engines._reading.acquire()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(engine.list, [KeyRange(state.location)], Listing())
        assert not wait([waiting], timeout=1).done
        assert taken == [True, True], "the other one reads"
        engines._reading.release()
        assert waiting.result().all.files


def test_no_more_tasks_than_requests_that_may_be_under_way(spark_session: SparkSession) -> None:
    assert spread_of(spark_session, 10_000).tasks > 1
    assert spread_of(spark_session, 10_000, at_once=1).tasks == 1
    assert spread_of(spark_session, 10_000, passes=2, at_once=2).tasks == 1, "two passes run side by side"
    engines = Engines("spark", spark_session, limits=limits("stores: {s3://b: {reads-at-once: 3, deletes-at-once: 2}}"))
    for places, at_once in ((["s3://b/t"], 3), (["s3://c/t"], None), (["s3://c/t", "s3://b/t"], 3)):
        engine = engines.spark("t", *places)
        assert isinstance(engine, SparkEngine)
        assert engine.at_once == at_once
    many = engines.delete_many(TableName.at("s3://b/t"), "s3://b/t", 10)
    assert isinstance(many, SparkDeleteMany)
    assert many.at_once == 2


class WatchedDelete(ObjectDelete):
    def share(self, parts: int) -> ObjectDelete:
        SHARES.append(("delete", parts))
        return super().share(parts)


def test_deletes_go_in_as_many_tasks_as_was_said(spark_session: SparkSession, tmp_path: Path) -> None:
    keys = [f"{tmp_path}/{number}" for number in range(6_000)]
    for key in keys[:10]:
        Path(key).write_bytes(b"x")
    many = SparkDeleteMany(spark_session, at_once=2, most=600)
    said = many.delete_many([Doomed(key) for key in keys], WatchedDelete(), always)
    assert [each.fate for each in said] == [Fate.DELETED] * 10 + [Fate.MISSING] * 5_990
    assert SHARES == [("delete", 2)]
    assert many.rows == 600


def test_jobs_that_delete_for_several_tables_come_one_after_the_other(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    """Each brings the whole budget to its tasks: two at a time would send twice as much as was said."""
    engines, left = Engines("spark", spark_session), list[int]()

    class Counting(ObjectDelete):
        def share(self, parts: int) -> ObjectDelete:
            left.append(len(list(tmp_path.iterdir())))
            return super().share(parts)

    def purged(table: str) -> list[Fate]:
        (tmp_path / table).write_bytes(b"x")
        everybody.wait()
        many = engines.delete_many(TableName.at(str(tmp_path)), str(tmp_path), 1)
        return [each.fate for each in many.delete_many([Doomed(f"{tmp_path}/{table}")], Counting(), always)]

    everybody = Barrier(3)
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(purged, "abc")) == [[Fate.DELETED]] * 3
    assert left == [3, 2, 1], "what was there when each began"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "cores"),
        ({"spark.dynamicAllocation.enabled": "true"}, "tasks"),
        ({"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "infinity"}, "tasks"),
        (
            {
                "spark.dynamicAllocation.enabled": "true",
                "spark.dynamicAllocation.maxExecutors": "3",
                "spark.executor.cores": "4",
            },
            "12",
        ),
        ({"spark.executor.instances": "5", "spark.executor.cores": "4"}, "20"),
        ({"spark.executor.instances": "many", "spark.executor.cores": "4"}, "cores"),
    ],
)
def test_as_many_parts_as_tasks_can_run_at_once(
    spark_session: SparkSession, settings: dict[str, str], expected: str
) -> None:
    known = {"cores": spark_session.sparkContext.defaultParallelism, "tasks": 1_000}
    said: Any = Settings(spark_session, settings)
    assert side_by_side(said, 1_000) == (known[expected] if expected in known else int(expected))
    assert side_by_side(said, 1) == 1


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, None),
        ({"spark.dynamicAllocation.enabled": "true"}, None),
        (
            {
                "spark.dynamicAllocation.enabled": "true",
                "spark.dynamicAllocation.maxExecutors": "3",
                "spark.executor.cores": "4",
            },
            12,
        ),
        ({"spark.executor.instances": "5", "spark.executor.cores": "4"}, 20),
    ],
)
def test_work_is_spread_over_the_slots_that_are_there_or_are_sure_to_come(
    spark_session: SparkSession, settings: dict[str, str], expected: int | None
) -> None:
    """A task that waits for an executor which never comes would hold back its part of the pace."""
    said: Any = Settings(spark_session, settings)
    assert task_slots(said) == (expected or spark_session.sparkContext.defaultParallelism)
    assert task_slots(said, 1) == 1


def test_slots_are_counted_if_the_session_does_not_tell(
    spark_session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a client of Spark Connect does: by what the session makes of a range."""
    monkeypatch.setattr(slots, "is_remote", lambda: True)
    monkeypatch.setattr(slots, "side_by_side", lambda session, tasks: tasks)
    assert task_slots(spark_session) == spark_session.sparkContext.defaultParallelism


class Settings:
    """A session with other settings than it was started with: those of executors cannot be changed later."""

    def __init__(self, session: SparkSession, said: dict[str, str]) -> None:
        self.sparkContext = session.sparkContext
        self.conf = self
        self._said = said

    def get(self, name: str, default: str | None) -> str | None:
        return self._said.get(name, default)
