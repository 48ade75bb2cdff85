from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from firnline.testing.paimon.worlds import Paimon, paimon
from firnline.testing.servers.fixtures import NOT_HERE
from firnline.testing.servers.process import Missing


@pytest.fixture(scope="session")
def both() -> Iterator[Paimon]:
    """Paimon's Java and pypaimon, running. Where one cannot be had, tests that ask are skipped, and counted."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(paimon())
        except Missing as missing:
            pytest.skip(f"{NOT_HERE}{missing}")
        yield running
