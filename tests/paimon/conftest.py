from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.paimon.worlds import Paimon, paimon
from harness.servers.fixtures import NOT_HERE
from harness.servers.process import Missing

from .small import Copy, make


@pytest.fixture(scope="session")
def both() -> Iterator[Paimon]:
    """Paimon's Java and pypaimon, running. Where one cannot be had, tests that ask are skipped, and counted."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(paimon())
        except Missing as missing:
            pytest.skip(f"{NOT_HERE}{missing}")
        yield running


@pytest.fixture(scope="module")
def made(both: Paimon) -> Iterator[Path]:
    """A small real table with every kind of root, for the tests of one file."""
    folder = make(both)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def copy(made: Path) -> Iterator[Copy]:
    """A copy of it that a test may change."""
    found = Copy.of(made, "copy")
    yield found
    found.end()
