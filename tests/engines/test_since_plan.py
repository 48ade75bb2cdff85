"""What became reachable since a plan, on both engines: the same files are spared, and each unit is opened once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from firnline.errors import UnreadableMetadata
from firnline.formats.iceberg.table import IcebergFormat
from firnline.local.engine import LocalEngine
from firnline.model.files import Root
from firnline.ops.reachability.since_plan import ReachableSincePlan
from firnline.ports.engines import Engine
from firnline.stores.objects import ObjectStores
from firnline.stores.real_paths import RealPaths
from firnline.testing.counting import CountingLog
from firnline.testing.damage import remove
from firnline.testing.tables import QuickFiles, SmallTable
from firnline.walking.known import KnownUnits

ENGINES = [
    "local",
    pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")]),
]

LONG_ON_SPARK = [
    "local",
    pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.full]),
]
"""Where Spark asks what threads ask, of the same answers."""


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return LocalEngine() if request.param == "local" else request.getfixturevalue("spark")


@pytest.fixture
def table(tmp_path: Path) -> SmallTable:
    """A table of which the first snapshot expired; the second keeps none of its files."""
    table = SmallTable(QuickFiles(), f"file://{tmp_path}/t")
    table.append(3)
    table.overwrite(table.live(), 2)
    return table


def live(table: SmallTable, *snapshots: int) -> list[Root]:
    table_format = IcebergFormat(ObjectStores())
    state = table_format.load("table", table.publish())
    return [Root(file, True, owner) for owner, file in table_format.roots(state) if int(owner) in snapshots]


def watching(engine: Engine, table: SmallTable, kept: Iterable[int], **options: Any) -> ReachableSincePlan:
    """Returns what watches after a plan that kept these snapshots."""
    walked = [list(table.changes[each].units) for each in kept]
    return ReachableSincePlan(lambda: engine, walked, **options)


@pytest.mark.parametrize("engine", LONG_ON_SPARK, indirect=True)
def test_what_comes_back_is_spared_and_news_until_it_is_decided(engine: Engine, table: SmallTable) -> None:
    _, kept = sorted(table.changes)
    expand, victims = IcebergFormat(ObjectStores()).expand, sorted(table.gone())
    watch = watching(engine, table, [kept])
    watch.add(live(table, kept), expand)
    assert watch.spared(victims) == set()
    watch.decide()
    back = table.bring_back(victims[0])
    watch.add(live(table, kept, back), expand)
    assert watch.newly_needed(victims) == {victims[0]}
    assert watch.spared([*victims, f"s3://b{victims[0].removeprefix('file://')}"]) == {
        victims[0],
        f"s3://b{victims[0].removeprefix('file://')}",
    }
    watch.decide()
    assert watch.newly_needed(victims) == set()
    again = table.append(1)
    watch.add(live(table, kept, back, again), expand)
    assert watch.newly_needed(victims) == set(), "it was needed when it was decided"
    assert watch.spared(victims) == {victims[0]}


@pytest.mark.parametrize("engine", LONG_ON_SPARK, indirect=True)
def test_each_unit_is_opened_once_over_all_looks(engine: Engine, table: SmallTable, tmp_path: Path) -> None:
    _, kept = sorted(table.changes)
    counting = CountingLog(ObjectStores(), str(tmp_path / "calls.log"))
    expand, watch = IcebergFormat(counting).expand, watching(engine, table, [kept])
    for number in range(1, 4):
        table.append(1)
        watch.add(live(table, *sorted(table.changes)[1 : 2 + number]), expand)
        watch.decide()
    new = {path for each in sorted(table.changes)[2:] for path in table.changes[each].units}
    opened = counting.calls()
    assert {key for _, key in opened} == new - table.changes[kept].units
    assert set(opened.values()) == {1}


def test_what_cannot_be_read_stops_the_look(engine: Engine, table: SmallTable) -> None:
    _, kept = sorted(table.changes)
    watch = watching(engine, table, [kept])
    back = table.bring_back(min(table.gone()))
    unit = min(table.changes[back].units - table.changes[kept].units)
    roots = live(table, kept, back)
    remove(unit.removeprefix("file://"))
    with pytest.raises(UnreadableMetadata, match=unit):
        watch.add(roots, IcebergFormat(ObjectStores()).expand)


def test_a_file_that_is_needed_by_way_of_a_link_is_spared(engine: Engine, tmp_path: Path) -> None:
    """By a folder's other name, which only the machine knows that has the folder."""
    (tmp_path / "link").symlink_to(tmp_path / "t")
    (tmp_path / "t").mkdir()
    linked = SmallTable(QuickFiles(), f"file://{tmp_path}/link")
    back = linked.append(2)
    watch = watching(engine, linked, [], real=RealPaths())
    watch.add(live(linked, back), IcebergFormat(ObjectStores()).expand)
    there = {path.replace("/link/", "/t/") for path in linked.live()}
    assert watch.spared([*there, f"file://{tmp_path}/t/data/other"]) == there


@pytest.mark.parametrize("engine", LONG_ON_SPARK, indirect=True)
def test_a_file_that_is_needed_by_a_link_of_another_name_is_spared_or_told(engine: Engine, tmp_path: Path) -> None:
    """Neither the folder nor the last name is the file's own."""
    table = SmallTable(QuickFiles(), f"file://{tmp_path}/t")
    back = table.append(2)
    kept, linked = sorted(table.live())
    moved = tmp_path / "elsewhere.parquet"
    Path(linked.removeprefix("file://")).rename(moved)
    Path(linked.removeprefix("file://")).symlink_to(moved)
    watch = watching(engine, table, [], real=RealPaths())
    watch.add(live(table, back), IcebergFormat(ObjectStores()).expand)
    asked = [f"file://{moved}", kept, linked, f"file://{tmp_path}/other.parquet"]
    assert watch.spared(asked) == set(asked[:3])
    assert watch.newly_needed(asked) == set(asked[:3])


def test_nothing_new_asks_no_engine(table: SmallTable) -> None:
    """A quiet table must not wait for a Spark session that has nothing to do."""
    _, kept = sorted(table.changes)
    watch = ReachableSincePlan(lambda: pytest.fail("an engine was asked for"), [list(table.changes[kept].units)])
    watch.add(live(table, kept), IcebergFormat(ObjectStores()).expand)
    assert watch.spared(sorted(table.gone())) == set()
    assert watch.newly_needed(sorted(table.gone())) == set()


def test_units_that_are_forgotten_are_opened_again() -> None:
    known = KnownUnits(most=1_000)
    for start in range(0, 5_000, 50):
        known.add(f"file:///t/{number}" for number in range(start, start + 50))
    assert len(known) == 1_000, "its memory has an end"
    assert known.among(["file:///t/0", "file:///t/999", "file:///t/1000", "file:///u/0"]).tolist() == [
        True,
        True,
        False,
        False,
    ]


def test_units_that_come_again_take_no_room_from_new_ones() -> None:
    """Every list of a table names nearly all of its manifests, at each look."""
    known, old = KnownUnits(most=1_000), [f"file:///t/{number}" for number in range(600)]
    for look in range(3):
        known.add(old)
        known.add([f"file:///new/{look}"])
    assert len(known) == 603
    assert known.among([*old, *(f"file:///new/{look}" for look in range(3))]).all()
