from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from . import tally
from .jvm import Jvm, started


@pytest.fixture(scope="session")
def judge() -> Iterator[Jvm]:
    """Iceberg in a JVM of this worker's own. Without Java or the jar every test that asks for it fails."""
    with started() as jvm:
        yield jvm


def pytest_terminal_summary(terminalreporter: Any) -> None:
    tally.write(terminalreporter)
