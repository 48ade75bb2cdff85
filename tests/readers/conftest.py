from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.neighbours.lakes import RealLake, real_lake
from tests.tiers.java_spark import JavaSpark
from tests.tiers.lakes import forget_catalogs


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealLake]:
    forget_catalogs()
    with real_lake(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture(scope="session")
def spark(java_session: JavaSpark) -> JavaSpark:
    return java_session
