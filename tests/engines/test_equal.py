"""Both engines say the same of random tables, and what they say is what the tables' writer remembers."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline.local.engine import LocalEngine
from firnline.model.files import File, FileKind, Root
from firnline.ports.engines import Engine
from firnline.ports.listings import ObjectClass
from firnline.stores.objects import ObjectStores
from firnline.testing.censuses import STRAYS, CensusWorld
from firnline.testing.strategies import Script, scripts
from firnline.testing.surveys import expected, survey
from firnline.testing.tables import QuickFiles

FULL = bool(os.environ.get("FIRNLINE_FULL"))
FOLDERS = count()


@settings(max_examples=3_000 if FULL else 60, deadline=None)
@given(scripts())
def test_the_local_engine_is_right(script: Script) -> None:
    store = ObjectStores()
    table, expired = script.play(store, f"memory://equal-{next(FOLDERS)}/t")
    assert survey(LocalEngine(threads=2), table, expired, store, outside=True) == expected(table, expired)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@settings(max_examples=150 if FULL else 3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=scripts(), outside=st.booleans())
def test_spark_and_local_say_the_same(script: Script, outside: bool, spark: Engine, tmp_path: Path) -> None:
    store = ObjectStores()
    table, expired = script.play(QuickFiles(), f"file://{tmp_path}/{next(FOLDERS)}/t")
    answer = survey(LocalEngine(), table, expired, store, outside=outside)
    assert survey(spark, table, expired, store, outside=outside) == answer


worlds = st.fixed_dictionaries(
    {
        "script": scripts(8),
        "neighbour": st.none() | scripts(3),
        "strays": st.sets(st.sampled_from(sorted(STRAYS))),
        "near": st.sets(st.sampled_from(["a.parquet", "b c.parquet", "d%20e.parquet"])),
        "stems": st.sampled_from(["s3://bucket", "hdfs://"]),
        "pieces": st.integers(1, 8),
    }
)
"""A table and perhaps a neighbour inside it, both with random histories, some strays, some near misses."""


def a_world(drawn: dict[str, Any], folder: str) -> tuple[CensusWorld, list[Root]]:
    """Returns the world with its files, and roots that miss some of them narrowly."""
    table, _ = drawn["script"].play(QuickFiles(), f"{folder}/t")
    neighbour = drawn["neighbour"] and drawn["neighbour"].play(QuickFiles(), f"{folder}/t/neighbour")[0]
    for each in filter(None, (table, neighbour)):
        each.publish()
    world = CensusWorld(table, neighbour)
    for name in drawn["strays"]:
        world.stray(name, *STRAYS[name])
    keys = [world.stray(f"data/{name}", of=ObjectClass.NEAR_MISS) for name in drawn["near"]]
    narrow = [File(FileKind.DATA, key.replace("file://", drawn["stems"]).replace(" ", "%20")) for key in keys]
    return world, [Root(file, needed=place % 2 == 0) for place, file in enumerate(narrow)]


@settings(max_examples=500 if FULL else 25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=worlds)
def test_the_local_census_is_right(drawn: dict[str, Any], tmp_path: Path) -> None:
    world, near = a_world(drawn, f"file://{tmp_path}/{next(FOLDERS)}")
    answer = world.count(LocalEngine(threads=2), ObjectStores(), near, drawn["pieces"])
    assert answer.classes == world.expected()
    assert answer.victims.keys() == {key for key, of in world.strays.items() if of is ObjectClass.VICTIM}
    assert len(answer.near_misses) == len(near)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@settings(max_examples=150 if FULL else 3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=worlds)
def test_spark_and_local_count_the_same(drawn: dict[str, Any], spark: Engine, tmp_path: Path) -> None:
    world, near = a_world(drawn, f"file://{tmp_path}/{next(FOLDERS)}")
    answer = world.count(LocalEngine(), ObjectStores(), near, drawn["pieces"])
    assert world.count(spark, ObjectStores(), near, drawn["pieces"]) == answer
