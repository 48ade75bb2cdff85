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
    says `sampled(n)` all but n.
    """
    if os.environ.get(FULL):
        return set()
    cases: dict[str, list[pytest.Item]] = {}
    wanted: dict[str, int] = {}
    for item in items:
        of = item.nodeid.partition("[")[0]
        sampled = item.get_closest_marker("sampled")
        if item.get_closest_marker("full") or sampled:
            cases.setdefault(of, []).append(item)
            wanted[of] = sampled.args[0] if sampled else 0
    return {each.nodeid for of, every in cases.items() for each in _all_but(every, wanted[of])}


def _all_but(every: Sequence[pytest.Item], wanted: int) -> list[pytest.Item]:
    """Returns those that are left after so many were taken: each time the one that brings the most values of
    parameters which no other brought so far, and of several such ones that farthest from those taken.
    """
    left, taken, seen = list(enumerate(every)), [0], set[tuple[str, int]]()
    while left and wanted > 0:
        best = max(left, key=lambda each: (len(_values(each[1]) - seen), min(abs(each[0] - one) for one in taken)))
        left.remove(best)
        taken.append(best[0])
        seen |= _values(best[1])
        wanted -= 1
    return [item for _, item in left]


def _values(item: pytest.Item) -> set[tuple[str, int]]:
    """Returns which value of each parameter a case has."""
    call = getattr(item, "callspec", None)
    return set(call.indices.items()) if call else set()
