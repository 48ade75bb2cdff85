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
    """Returns the ids of the tests that only the long lane runs: those that `full` or `full_but` is said of, and of the
    cases of one that says `sampled(n)` all but n.
    """
    if os.environ.get(FULL):
        return set()
    left = {item.nodeid for item in items if _is_long(item)}
    cases: dict[str, list[pytest.Item]] = {}
    wanted: dict[str, int] = {}
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled and item.nodeid not in left:
            of = item.nodeid.partition("[")[0]
            cases.setdefault(of, []).append(item)
            wanted[of] = sampled.args[0]
    return left.union(each.nodeid for of, every in cases.items() for each in _all_but(every, wanted[of]))


def _is_long(item: pytest.Item) -> bool:
    """Tells whether a test is the long lane's: it says `full`, or its class says it of this test among those that it
    inherits, or says `full_but` of others.
    """
    name = getattr(item, "originalname", item.name)
    return any(not mark.args or name in _named(item, mark) for mark in item.iter_markers("full")) or any(
        name not in _named(item, mark) for mark in item.iter_markers("full_but")
    )


def _named(item: pytest.Item, mark: pytest.Mark) -> tuple[str, ...]:
    """Returns the tests that a mark of a class names. A name that no test of it has is refused: it would hide that
    the test was called otherwise.
    """
    unknown = [each for each in mark.args if not hasattr(getattr(item, "cls", None), each)]
    if unknown:
        raise pytest.UsageError(f"{item.nodeid}: `{mark.name}` names {', '.join(unknown)}: no test of its class")
    return mark.args


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
