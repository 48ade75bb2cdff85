"""Random lakes of real tables: what a command says of all of them together is what it says of each alone, whatever they
share, wherever they lie, and whichever of them is damaged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline.app.places import now_ms
from firnline.errors import FirnlineError
from firnline.plans.plan import Plan
from firnline.testing.damage import SPOILED
from tests.neighbours.lakes import RealLake, real_lake

FULL = bool(os.environ.get("FIRNLINE_FULL"))
MADE = count()
SAME_FOLDER = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
VERBS = ("append", "append", "overwrite", "import", "clone", "inside")
Step = tuple[str, int, int]
"""What is done, to which table, and with which other one."""
steps = st.lists(st.tuples(st.sampled_from(VERBS), st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=9)
damages = st.lists(st.tuples(st.sampled_from(sorted(SPOILED)), st.integers(0, 9), st.integers(0, 99)), max_size=1)


def play(lake: RealLake, script: Sequence[Step]) -> list[str]:
    """Writes the tables and returns their names."""
    names = ["t0"]
    lake.create("t0")
    lake.append("t0", 0)
    for number, (verb, one, other) in enumerate(script, 1):
        table, beside = names[one % len(names)], names[other % len(names)]
        if verb == "append":
            lake.append(table, number)
        elif verb == "overwrite":
            lake.overwrite(table, number)
        elif verb == "clone":
            lake.clone(table, f"t{number}")
            names.append(f"t{number}")
            lake.append(names[-1], number)
        elif verb == "inside":
            names.append(f"t{number}")
            place = f"{lake.table(table).location()}/data/inner{number}"
            lake.catalog.create_table(f"db.{names[-1]}", lake.table("t0").schema(), location=place)
            lake.append(names[-1], number)
        elif not set(lake.data_files(beside)) & set(lake.data_files(table)):
            lake.table(table).add_files(lake.data_files(beside))
            lake.overwrite(beside, number)
    return names


def spoil(lake: RealLake, names: Sequence[str], how: str, whose: int, which: int) -> None:
    """Damages a list or a manifest of a table, which others may need too."""
    table = lake.table(names[whose % len(names)])
    units = [each.manifest_list for each in table.snapshots()]
    units += [each.manifest_path for snapshot in table.snapshots() for each in snapshot.manifests(table.io)]
    SPOILED[how](units[which % len(units)].removeprefix("file://"))


def told(answer: Plan | FirnlineError) -> Any:
    """Returns what a plan says; only that it is refused where a damaged table is in doubt: which of two is met first,
    nobody can tell. The bytes of metadata are asked for in other ways.
    """
    if isinstance(answer, FirnlineError):
        return "unreadable"
    if answer.conflict is not None:
        return "refused", answer.expire
    found = answer.to_json()
    versions = found["metadata_versions"] and found["metadata_versions"]["versions"]
    return {**found, "engine": found["engine"] == "none", "metadata_versions": versions}


def alone(lake: RealLake, name: str, asked: dict[str, Any]) -> Plan | FirnlineError:
    try:
        return lake.firnline().plan(f"lake.db.{name}", **asked).plan
    except FirnlineError as problem:
        return problem


def asked_now() -> dict[str, Any]:
    return {"older_than": now_ms(), "now": now_ms(), "retain_last": 1, "blast_radius": 1.0}


def assert_alike(folder: Path, script: Sequence[Step], damage: Sequence[tuple[str, int, int]], engine: str) -> None:
    with lake_in(folder) as lake:
        names = play(lake, script)
        for each in damage:
            spoil(lake, names, *each)
        asked = asked_now()
        several = lake.firnline(engine).several().plan(**asked)
        together = {each.table: each.problem or each.value for each in several}
        assert sorted(together) == sorted(f"lake.db.{name}" for name in names)
        for name in names:
            answer = together[f"lake.db.{name}"]
            assert answer is not None
            assert told(answer) == told(alone(lake, name, asked)), name


@contextmanager
def lake_in(folder: Path) -> Iterator[RealLake]:
    place = folder / f"lake{next(MADE)}"
    place.mkdir()
    with pytest.MonkeyPatch.context() as patched, real_lake(place, patched) as lake:
        yield lake


@settings(max_examples=200 if FULL else 8, deadline=None, suppress_health_check=SAME_FOLDER)
@given(script=steps, damage=damages)
def test_a_lake_is_planned_as_its_tables_are(
    tmp_path: Path, script: list[Step], damage: list[tuple[str, int, int]]
) -> None:
    assert_alike(tmp_path, script, damage, "local")


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@settings(max_examples=40 if FULL else 2, deadline=None, suppress_health_check=SAME_FOLDER)
@given(script=steps, damage=damages)
def test_a_lake_is_planned_on_spark_as_its_tables_are_on_threads(
    tmp_path: Path, script: list[Step], damage: list[tuple[str, int, int]]
) -> None:
    assert_alike(tmp_path, script, damage, "spark")
