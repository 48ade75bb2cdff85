from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from firnline.formats import registry

PACKAGE = Path(__file__).with_name("package")


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    """Has the toy's package on the path, as if it were installed: its entry point is all that leads to it."""
    sys.path.insert(0, str(PACKAGE))
    registry.kits.cache_clear()
    yield
    sys.path.remove(str(PACKAGE))
    registry.kits.cache_clear()
