"""Random lakes: what an engine says of every table when it looks at all of them is what it says of each alone."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline.local.engine import LocalEngine
from firnline.model.files import FileKind, Root
from firnline.ports.engines import Engine, ServerRoots, TableWalk
from firnline.stores.objects import ObjectStores
from firnline.testing.damage import SPOILED
from firnline.testing.lakes.engines import Answer, alone, of_all, walk_of
from firnline.testing.strategies import Script, scripts
from firnline.testing.tables import QuickFiles, SmallTable

FULL = bool(os.environ.get("FIRNLINE_FULL"))
FOLDERS = count()
SAME_FOLDER = [HealthCheck.function_scoped_fixture]
UNITS = (FileKind.MANIFEST, FileKind.MANIFEST_LIST)


@dataclass(frozen=True, slots=True)
class Drawn:
    """One table of a lake: its history; whether it lies in the folder of the one before, is another registration of it
    with snapshots of its own to expire, asks what that one needs; and what spoils which of its units.
    """

    script: Script
    is_inside: bool
    is_clone: bool
    asks: bool
    spoiled: tuple[str, int] | None


tables = st.builds(
    Drawn,
    scripts(6),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.none() | st.tuples(st.sampled_from(sorted(SPOILED)), st.integers(0, 9)),
)
lakes = st.lists(tables, min_size=2, max_size=5)


def walks_of(lake: list[Drawn], folder: str) -> list[TableWalk]:
    """Writes the lake and returns what is asked of its tables."""
    store, walks = ObjectStores(), list[TableWalk]()
    made: list[SmallTable] = []
    for number, drawn in enumerate(lake):
        place = f"{made[-1].location}/inner" if made and drawn.is_inside else f"{folder}/{number}"
        table, expired = drawn.script.play(QuickFiles(), place)
        if made and drawn.is_clone:
            table, expired = made[-1], {each for at, each in enumerate(made[-1].changes) if at in drawn.script.doomed}
        walk = walk_of(table, sorted(expired), store)
        if walks and drawn.asks:
            theirs = tuple(Root(root.file, True) for root in walks[-1].roots)
            walk = replace(walk, elsewhere=[ServerRoots(theirs, walks[-1].expand)])
        walks.append(replace(walk, entries=number * 1_000))
        made.append(table)
    for table, drawn in zip(made, lake, strict=True):
        spoil(table, drawn.spoiled)
    return walks


def spoil(table: SmallTable, how: tuple[str, int] | None) -> None:
    units = sorted(path for path, each in table.made.items() if each.kind in UNITS and path.startswith("file://"))
    if how is not None and units:
        path = Path(units[how[1] % len(units)].removeprefix("file://"))
        if path.exists() and path.stat().st_size:
            SPOILED[how[0]](str(path))


def assert_alike(lake: list[Answer], tables_alone: list[Answer]) -> None:
    """Which of several damaged units is met first, nobody can tell; that their table is refused, each must."""
    for one, other in zip(lake, tables_alone, strict=True):
        assert one == other or (isinstance(one, tuple) and isinstance(other, tuple))


@settings(max_examples=2_000 if FULL else 30, deadline=None, suppress_health_check=SAME_FOLDER)
@given(lake=lakes)
def test_a_lake_is_its_tables(lake: list[Drawn], tmp_path: Path) -> None:
    walks = walks_of(lake, f"file://{tmp_path}/{next(FOLDERS)}")
    engine = LocalEngine(threads=2)
    assert_alike(of_all(engine, walks), [alone(engine, walk) for walk in walks])


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@settings(max_examples=100 if FULL else 4, deadline=None, suppress_health_check=SAME_FOLDER)
@given(lake=lakes)
def test_a_lake_on_spark_is_its_tables_on_threads(lake: list[Drawn], spark: Engine, tmp_path: Path) -> None:
    walks = walks_of(lake, f"file://{tmp_path}/{next(FOLDERS)}")
    assert_alike(of_all(spark, walks), [alone(LocalEngine(), walk) for walk in walks])
