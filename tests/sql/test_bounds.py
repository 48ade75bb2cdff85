"""Filters as bounds: what they spare can hold no row that the filter lets through."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
)

from firnline.sql.relations import TimeBounds, bounds_of

START = datetime(2024, 7, 1, tzinfo=UTC)
TIME, EXPIRED = ("committed_at",), ("expired",)
COMPARED = {
    EqualTo: datetime.__eq__,
    GreaterThan: datetime.__gt__,
    GreaterThanOrEqual: datetime.__ge__,
    LessThan: datetime.__lt__,
    LessThanOrEqual: datetime.__le__,
}


def milliseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@given(
    st.lists(st.tuples(st.sampled_from(list(COMPARED)), st.integers(0, 9_000)), max_size=4),
    st.lists(st.integers(0, 9), min_size=1, max_size=5),
)
def test_a_commit_that_passes_the_filters_is_never_spared(said: list[tuple[type, int]], commits: list[int]) -> None:
    """Filters are in microseconds, commits in milliseconds."""
    filters: list[Filter] = [kind(TIME, START + timedelta(microseconds=at)) for kind, at in said]
    moments = [START + timedelta(milliseconds=each) for each in commits]
    passing = [
        each for each in moments if all(COMPARED[kind](each, START + timedelta(microseconds=at)) for kind, at in said)
    ]
    bounds = bounds_of(filters)
    assert all(bounds.meets(milliseconds(each), milliseconds(each)) for each in passing)
    assert not passing or bounds.meets(milliseconds(min(moments)), milliseconds(max(moments)))


def test_bounds_do_spare() -> None:
    bounds = bounds_of([GreaterThan(TIME, START), LessThan(TIME, START + timedelta(days=1))])
    assert not bounds.meets(0, milliseconds(START) - 1)
    assert not bounds.meets(milliseconds(START) + 86_400_002, milliseconds(START) * 2)


@pytest.mark.parametrize(
    ("filters", "expired"),
    [
        ([EqualTo(EXPIRED, True)], True),
        ([EqualTo(EXPIRED, False)], False),
        ([Not(EqualTo(EXPIRED, True))], False),
        ([EqualTo(("summary", "expired"), True), StringContains(("operation",), "a"), EqualTo(TIME, 3)], None),
    ],
)
def test_whether_expired(filters: list[Filter], expired: bool | None) -> None:
    assert bounds_of(filters) == TimeBounds(expired=expired)
