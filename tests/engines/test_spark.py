"""The Spark engine keeps the contract of every engine."""

from __future__ import annotations

import pytest

from firnline.ports.engines import Engine
from firnline.testing.engines import EngineContract

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


class TestSparkEngine(EngineContract):
    @pytest.fixture
    def engine(self, spark: Engine) -> Engine:
        return spark
