"""A purge takes a reader for dead as a decision does: both its checkpoint and what it has yet to read must be old."""

from __future__ import annotations

import pytest

from firnline.model.readers import StreamReader
from firnline.model.removals import Removal
from firnline.model.times import DAY_MS
from firnline.ops.readers.needs import _is_over

NOW = 100 * DAY_MS


@pytest.mark.parametrize(
    ("moved", "following", "limit", "over"),
    [
        (60, 60, 30, True),
        (60, 10, 30, False),  # a checkpoint that was restored with the times of its files
        (10, 60, 30, False),  # one that works through what is old
        (60, 60, None, False),
        (None, 60, 30, False),
        (60, None, 30, False),
    ],
)
def test_the_younger_of_both_decides(moved: int | None, following: int | None, limit: int | None, over: bool) -> None:
    reader = StreamReader("c", 0, "1", "1", None if moved is None else NOW - moved * DAY_MS)
    at = (
        []
        if following is None
        else [{"snapshot-id": 2, "parent-snapshot-id": 1, "timestamp-ms": NOW - following * DAY_MS}]
    )
    removal = Removal(({"snapshot-id": 1, "timestamp-ms": 0}, *at))
    assert _is_over(reader, removal, (), None if limit is None else limit * DAY_MS, NOW) == over


@pytest.mark.parametrize(("next_unread", "over"), [(60, True), (10, False)])
def test_below_a_hole_the_first_that_is_missing_counts(next_unread: int, over: bool) -> None:
    """What follows where it stands was kept; a later one was taken out."""
    reader = StreamReader("c", 0, "1", "1", NOW - 60 * DAY_MS)
    gone = {"snapshot-id": 3, "parent-snapshot-id": 2, "timestamp-ms": NOW - next_unread * DAY_MS}
    assert _is_over(reader, Removal((gone,)), ("3",), 30 * DAY_MS, NOW) == over
