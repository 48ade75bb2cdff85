from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.neighbours.lakes import RealLake, real_lake
from tests.tiers.java_spark import JavaSpark, java_spark
from tests.tiers.lakes import forget_catalogs


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealLake]:
    forget_catalogs()
    with real_lake(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture(scope="session")
def spark() -> Iterator[JavaSpark]:
    """Spark with Iceberg 1.12.0 in a JVM of this worker's own: tests that ask for it share a group."""
    with java_spark() as session:
        yield session
