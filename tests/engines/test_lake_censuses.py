"""Random lakes: one census of all tables says of each what a listing and a census of its own would."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import firnline
from firnline.errors import StoreError
from firnline.local.engine import LocalEngine
from firnline.model.files import File, FileKind, Root, Tally
from firnline.model.times import DAY_MS
from firnline.ports.engines import Engine, TableSearch
from firnline.spark import streaming
from firnline.spark.packets import unpacked
from firnline.stores.objects import ObjectStores
from firnline.testing.censuses import STRAYS, CensusWorld
from firnline.testing.damage import SPOILED
from firnline.testing.dated import Clock, dated
from firnline.testing.lakes.censuses import Answer, CensusLake, alone, together
from firnline.testing.strategies import Script, scripts
from firnline.testing.tables import QuickFiles, SmallTable
from tests.neighbours.lakes import real_lake

FULL = bool(os.environ.get("FIRNLINE_FULL"))
FOLDERS = count()
SAME_FOLDER = [HealthCheck.function_scoped_fixture]
UNITS = (FileKind.MANIFEST, FileKind.MANIFEST_LIST)


@dataclass(frozen=True, slots=True)
class Drawn:
    """One table of a lake: its history; whether it lies in the folder of the one before, is another registration of
    it, or needs some of its strays, by their own names or under another scheme; its strays, whether it is searched, and
    whether it counts for its own search alone.
    """

    script: Script
    is_inside: bool
    is_again: bool
    needs: frozenset[int]
    near: frozenset[int]
    strays: frozenset[str]
    is_searched: bool
    is_private: bool


few = st.frozensets(st.integers(0, 9), max_size=3)
tables = st.builds(
    Drawn, scripts(4), st.booleans(), st.booleans(), few, few,
    st.frozensets(st.sampled_from(sorted(STRAYS))), st.booleans(), st.booleans(),
)  # fmt: skip
lakes = st.lists(tables, min_size=2, max_size=5)
damages = st.one_of(*[st.none()] * 3, st.tuples(st.sampled_from(sorted(SPOILED)), st.integers(0, 9)))


def lake_of(drawn: list[Drawn], folder: str, damage: tuple[str, int] | None) -> CensusLake:
    """Writes the lake, and spoils one unit of it."""
    lake = CensusLake([], [])
    for number, each in enumerate(drawn):
        before = lake.worlds[-1] if lake.worlds else None
        if before is not None and each.is_again:
            lake.worlds.append(before)
            lake.owners.append(lake.owners[-1])
            continue
        place = f"{before.table.location}/inner" if before is not None and each.is_inside else f"{folder}/{number}"
        table, _ = each.script.play(QuickFiles(), place)
        table.publish()
        world = CensusWorld(table)
        for name in each.strays:
            world.stray(name, *STRAYS[name])
        if before is not None:
            lake.more += needs(before, each, f"{number}")
        lake.worlds.append(world)
        lake.owners.append(f"{number}")
        lake.private |= {f"{number}"} if each.is_private else frozenset()
    units = [path for world in lake.worlds for path, each in world.table.made.items() if each.kind in UNITS]
    local = sorted(path.removeprefix("file://") for path in units if path.startswith("file://"))
    if damage is not None and local:
        SPOILED[damage[0]](local[damage[1] % len(local)])
    return lake


def needs(other: CensusWorld, drawn: Drawn, owner: str) -> list[Root]:
    """Returns roots into another table's folder: by their names, and by names that differ in their scheme alone."""
    keys = sorted(other.strays)
    own = [keys[place % len(keys)] for place in drawn.needs if keys]
    near = [keys[place % len(keys)].replace("file://", "s3://bucket") for place in drawn.near if keys]
    return [Root(File(FileKind.DATA, key), True, owner) for key in (*own, *near)]


def assert_alike(ones: list[Answer], others: list[Answer]) -> None:
    """Which of several damaged units is met first, nobody can tell; that all are refused, each must."""
    for one, other in zip(ones, others, strict=True):
        assert one == other or (isinstance(one, tuple) and isinstance(other, tuple))


def searched(lake: CensusLake, drawn: list[Drawn]) -> list[TableSearch]:
    return [search for search, each in zip(lake.searches, drawn, strict=True) if each.is_searched]


@settings(max_examples=2_000 if FULL else 30, deadline=None, suppress_health_check=SAME_FOLDER)
@given(drawn=lakes, damage=damages)
def test_one_census_of_a_lake_is_that_of_each_table(
    drawn: list[Drawn], damage: tuple[str, int] | None, tmp_path: Path
) -> None:
    lake, engine = lake_of(drawn, f"file://{tmp_path}/{next(FOLDERS)}", damage), LocalEngine(threads=2)
    searches = searched(lake, drawn)
    assert_alike(
        together(engine, lake, ObjectStores(), searches), alone(lake, ObjectStores(), searches)
    )  # fmt: skip


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@settings(max_examples=100 if FULL else 3, deadline=None, suppress_health_check=SAME_FOLDER)
@given(drawn=lakes, damage=damages)
def test_one_census_of_a_lake_on_spark_is_that_of_each_table_on_threads(
    drawn: list[Drawn], damage: tuple[str, int] | None, spark: Engine, tmp_path: Path
) -> None:
    lake = lake_of(drawn, f"file://{tmp_path}/{next(FOLDERS)}", damage)
    searches = searched(lake, drawn)
    assert_alike(
        together(spark, lake, ObjectStores(), searches), alone(lake, ObjectStores(), searches)
    )  # fmt: skip


def two_tables(folder: Path, strays: int) -> CensusLake:
    """Returns a small table with a stray, and one with many."""
    worlds = []
    for number, several in enumerate((1, strays)):
        table = SmallTable(QuickFiles(), f"file://{folder}/{number}")
        table.append(2)
        table.publish()
        worlds.append(CensusWorld(table))
        for each in range(several):
            worlds[-1].stray(f"data/left-{each}.parquet")
    return CensusLake(worlds, ["0", "1"])


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_orphans_of_one_table_come_to_the_driver_in_several_jobs(
    spark: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a job brings is held by the driver, so one table's many orphans are not one job's."""
    a_job, lake, came = 20, two_tables(tmp_path, 200), Counter[int]()
    bring = streaming.brought

    def brought(rows: DataFrame, count: int, of: str = "") -> Iterator[Any]:
        parted = rows.coalesce(1 + count // a_job).select(F.spark_partition_id().alias("job"), "message")
        sizes = Counter[int]()
        for row in parted.collect():
            sizes[row.job] += len(unpacked(row.message))
        came[max(sizes.values(), default=0)] += 1
        return bring(rows, count, of)

    monkeypatch.setattr(streaming, "_ROWS_PER_JOB", a_job)
    monkeypatch.setattr(streaming, "brought", brought)
    assert together(spark, lake, ObjectStores()) == alone(lake, ObjectStores())
    assert 0 < max(came) < 3 * a_job


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_disk_that_takes_no_rows_is_told(spark: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = two_tables(tmp_path, 3)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    for answer in together(spark, lake, ObjectStores()):
        assert isinstance(answer, tuple)
        assert answer[0] is StoreError
        assert "disk of this machine" in answer[1]


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_search_of_many_tables_on_spark_is_that_on_threads(
    spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with real_lake(tmp_path, monkeypatch) as lake:
        for number, name in enumerate("abc"):
            lake.create(name)
            lake.append(name, number)
            stray = Path(lake.table(name).location().removeprefix("file://")) / "data" / f"{name}.parquet"
            stray.write_bytes(b"x" * (1 + number))
        plans = []
        on_cluster = firnline.open(engine="spark", session=spark_session)
        for opened, dry_run in ((lake.firnline(), True), (on_cluster, False)):  # what the first saved would be listed
            answers = dated(opened, Clock(10 * DAY_MS)).several().orphans(blast_radius=1.0, dry_run=dry_run)
            assert [each.problem for each in answers] == [None] * 3
            plans.append([each.value.plan for each in answers if each.value])
        on_threads, on_spark = ([(plan.classes, plan.victims) for plan in some] for some in plans)
        assert on_threads == on_spark
        assert [plan.victims.all for plan in plans[1]] == [Tally(1, 1), Tally(1, 2), Tally(1, 3)]
        assert {plan.engine for plan in plans[1]} == {"spark"}
        assert all(plan.run for plan in plans[1])
