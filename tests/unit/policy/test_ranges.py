"""Paimon's own rule for what a branch keeps, against the loop that it is written as."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.policy.native import LARGEST, Range

TIMES = {number: number * 10 for number in range(1, 11)}


@pytest.mark.parametrize(
    ("rule", "cutoff", "first"),
    [
        (Range(1, LARGEST, 0), 1_000, 10),  # nothing is young: the newest stays
        (Range(3, LARGEST, 0), 1_000, 8),  # at least three stay
        (Range(1, 4, 0), -1, 7),  # all are young, and yet no more than four stay
        (Range(1, LARGEST, 0), -1, 1),  # all are young
        (Range(1, LARGEST, 0), 60, 5),  # 6 is young, so 5 was the newest not long ago
        (Range(1, LARGEST, 0, by_next=False), 60, 6),  # up to Paimon 1.4 it counts by its own time
        (Range(1, LARGEST, 0, limit=3), 1_000, 4),  # three at once
        (Range(20, LARGEST, 0), 1_000, 1),  # there are fewer than must stay
    ],
)
def test_the_first_that_stays(rule: Range, cutoff: int, first: int) -> None:
    assert rule.first_kept(TIMES, cutoff) == first


def _as_paimon_writes_it(rule: Range, times: dict[int, int], cutoff: int) -> int:
    earliest, latest = min(times), max(times)
    begin = max(latest - rule.at_most + 1, earliest)
    end = min(latest - rule.at_least + 1, earliest + rule.limit)
    number = begin
    while number < end:
        looked_at = number + 1 if rule.by_next else number
        if looked_at in times and cutoff <= times[looked_at]:
            end = number
            break
        number += 1
    return max(end, earliest)


@given(
    st.sets(st.integers(1, 30), min_size=1),
    st.integers(1, 12),
    st.integers(0, 12),
    st.integers(0, 12),
    st.booleans(),
    st.integers(0, 330),
)
def test_it_is_the_loop_that_paimon_runs(
    numbers: set[int], least: int, more: int, limit: int, by_next: bool, cutoff: int
) -> None:
    times = {number: number * 10 + (number * 7) % 23 for number in numbers}
    rule = Range(least, least + more, 0, limit, by_next)
    assert rule.first_kept(times, cutoff) == _as_paimon_writes_it(rule, times, cutoff)


def test_it_says_which_meaning_of_time_it_goes_by() -> None:
    assert "by the time of the next one" in Range(1, 5, 3_600_000).describe()
    assert "by its own time" in Range(1, 5, 3_600_000, by_next=False).describe()
