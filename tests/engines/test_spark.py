"""The Spark engine keeps the contract of every engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import firnline
from firnline.ports.engines import Engine
from firnline.testing.engines import EngineContract, a_long_life
from firnline.testing.engines_census import CensusContract
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
