from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.tiers.java_spark import JavaSpark, java_spark


@pytest.fixture(scope="session")
def spark() -> Iterator[JavaSpark]:
    """Spark with Iceberg 1.12.0 in a JVM of this worker's own: tests that ask for it share a group."""
    with java_spark() as session:
        yield session
