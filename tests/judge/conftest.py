from __future__ import annotations

from collections.abc import Iterator

import pytest

from .jvm import Jvm, started


@pytest.fixture(scope="session")
def judge() -> Iterator[Jvm]:
    """Iceberg in a JVM of this worker's own. Without Java or the jar every test that asks for it fails."""
    with started() as jvm:
        yield jvm
