"""How much of a test a lane runs: little while one writes, more before a change goes in, the most now and then."""

from __future__ import annotations

import os
from typing import TypeVar

Count = TypeVar("Count")
UNIT, FULL = "FIRNLINE_UNIT", "FIRNLINE_FULL"


def by_lane(unit: Count, test: Count, full: Count) -> Count:
    """Returns what belongs to `make unit`, `make test` or `make test-full`."""
    return full if os.environ.get(FULL) else unit if os.environ.get(UNIT) else test
