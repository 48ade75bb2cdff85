"""The local engine keeps the contract of every engine."""

from __future__ import annotations

import pytest

from firnline.local.engine import LocalEngine
from firnline.ports.engines import Engine
from firnline.testing.engines import EngineContract


class TestLocalEngine(EngineContract):
    @pytest.fixture
    def engine(self) -> Engine:
        return LocalEngine()
