"""How much of a test a lane runs: little while one writes, more before a change goes in, the most now and then."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

Count = TypeVar("Count")
UNIT, FULL = "FIRNLINE_UNIT", "FIRNLINE_FULL"


def by_lane(unit: Count, test: Count, full: Count) -> Count:
    """Returns what belongs to `make unit`, `make test` or `make test-full`."""
    return full if os.environ.get(FULL) else unit if os.environ.get(UNIT) else test


def left_out(items: Sequence[pytest.Item]) -> set[str]:
    """Returns the ids of the tests that only the long lane runs: those that say `full`, and of the cases of one that
    says `sampled(n)` all but n, which lie evenly between the first and the last.
    """
    if os.environ.get(FULL):
        return set()
    cases: dict[str, list[str]] = {}
    kept: dict[str, int] = {}
    for item in items:
        of = item.nodeid.partition("[")[0]
        sampled = item.get_closest_marker("sampled")
        if item.get_closest_marker("full") or sampled:
            cases.setdefault(of, []).append(item.nodeid)
            kept[of] = sampled.args[0] if sampled else 0
    return {each for of, every in cases.items() for each in set(every) - set(_spread(every, kept[of]))}


def _spread(every: Sequence[str], wanted: int) -> list[str]:
    """Returns so many of them, the first and the last among these."""
    if wanted >= len(every) or wanted == 0:
        return list(every[:wanted])
    step = (len(every) - 1) / max(1, wanted - 1)
    return [every[round(number * step)] for number in range(wanted)]
