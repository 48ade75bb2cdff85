"""Both engines say the same of random tables, and what they say is what the tables' writer remembers."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline.local.engine import LocalEngine
from firnline.ports.engines import Engine
from firnline.stores.objects import ObjectStores
from firnline.testing.strategies import Script, scripts
from firnline.testing.surveys import expected, survey
from firnline.testing.tables import QuickFiles

FULL = bool(os.environ.get("FIRNLINE_FULL"))
FOLDERS = count()


@settings(max_examples=3_000 if FULL else 250, deadline=None)
@given(scripts())
def test_the_local_engine_is_right(script: Script) -> None:
    store = ObjectStores()
    table, expired = script.play(store, f"memory://equal-{next(FOLDERS)}/t")
    assert survey(LocalEngine(threads=2), table, expired, store, outside=True) == expected(table, expired)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@settings(max_examples=150 if FULL else 10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=scripts(), outside=st.booleans())
def test_spark_and_local_say_the_same(script: Script, outside: bool, spark: Engine, tmp_path: Path) -> None:
    store = ObjectStores()
    table, expired = script.play(QuickFiles(), f"file://{tmp_path}/{next(FOLDERS)}/t")
    answer = survey(LocalEngine(), table, expired, store, outside=outside)
    assert survey(spark, table, expired, store, outside=outside) == answer
