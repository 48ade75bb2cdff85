"""What readers keep, and for how long one counts that stands still."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.model.graph import Graph
from firnline.model.holds import Pin
from firnline.model.readers import StreamReader
from firnline.model.snapshots import Snapshot
from firnline.model.times import DAY_MS
from firnline.policy.readers import ReaderRules, judge_readers, limit_pins, needed_by

NOW = 1_000 * DAY_MS
AGES = {"1": 30, "2": 25, "3": 19, "4": 1}
"""The snapshots of a table and their ages in days."""


def chain(ages: dict[str, int]) -> Graph:
    names = list(ages)
    parents = [None, *names]
    return Graph(Snapshot(each, parents[at], NOW - ages[each] * DAY_MS) for at, each in enumerate(names))


def reader(at: str | None, moved: int | None = 0, began: str | None = "1") -> StreamReader:
    return StreamReader("/job", 0, at, began, None if moved is None else NOW - moved * DAY_MS)


@pytest.mark.parametrize(
    ("written", "unread", "limit", "counts"),
    [(20, 19, 14, False), (20, 19, 19, True), (20, 19, None, True), (1, 19, 14, True), (20, 2, 14, True)],
)
def test_only_a_reader_that_surely_stands_still_stops_counting(
    written: int, unread: int, limit: int | None, counts: bool
) -> None:
    """It is alive if it wrote not long ago, and had nothing to do if nothing that it could read is old."""
    graph = chain({**AGES, "3": unread})
    rules = ReaderRules(None if limit is None else limit * DAY_MS)
    needs = judge_readers([reader("2", written)], graph, "4", rules, NOW)
    assert [pin.snapshot for pin in needs.pins] == (["4", "3", "2"] if counts else [])
    told = [note for note in needs.notes if "it no longer keeps 3 snapshots from 2 on" in note]
    assert len(told) == (not counts)


def test_one_of_unknown_age_counts_for_ever() -> None:
    needs = judge_readers([reader("2", None)], chain(AGES), "4", ReaderRules(DAY_MS), NOW)
    assert len(needs.pins) == 3


def test_one_that_stands_still_without_a_limit_is_spoken_of() -> None:
    (note,) = judge_readers([reader("2", 20)], chain(AGES), "4", ReaderRules(), NOW).notes
    assert "stands still for 19d and keeps 3 snapshots from 2 on" in note


@pytest.mark.parametrize(
    ("at", "from_start", "needed"),
    [
        ("4", False, ["4"]),
        ("2", False, ["4", "3", "2"]),
        ("2", True, ["4", "3", "2", "1"]),
        (None, False, ["4", "3", "2", "1"]),
        ("9", False, []),
    ],
)
def test_what_a_reader_needs(at: str | None, from_start: bool, needed: list[str]) -> None:
    assert needed_by(reader(at), chain(AGES), "4", from_start) == needed


@given(st.data())
def test_each_child_of_what_a_reader_stands_at_is_kept_up_to_the_head(data: st.DataObject) -> None:
    """Whatever the branches look like: a stream looks for the child of each snapshot among the ancestors of main."""
    many = data.draw(st.integers(1, 12))
    parents = [None if at == 0 else data.draw(st.none() | st.integers(0, at - 1)) for at in range(many)]
    graph = Graph(Snapshot(str(at), None if up is None else str(up), at) for at, up in enumerate(parents))
    current, at = (str(data.draw(st.integers(0, many - 1))) for _ in range(2))
    kept = set(needed_by(reader(at), graph, current, from_start=False))
    assert at in kept
    line = [each.id for each in graph.lineage(current)]
    if at in line:
        assert kept == set(line[: line.index(at) + 1]), "and nothing of what it has read, nor of other branches"
    else:
        assert {each.id for each in graph if each.parent in kept} <= kept


def test_a_pin_of_the_table_itself_ends_with_the_limit_if_its_program_stands_still() -> None:
    pins = [Pin("3", "consumer c", moved_ms=NOW - 20 * DAY_MS), Pin("4", "consumer c", moved_ms=NOW - 20 * DAY_MS)]
    pins += [Pin("1", "first"), Pin("2", "consumer d", moved_ms=NOW - DAY_MS)]
    assert limit_pins(pins, chain(AGES), None, NOW).pins == tuple(pins)
    limited = limit_pins(pins, chain(AGES), 14 * DAY_MS, NOW)
    assert [pin.snapshot for pin in limited.pins] == ["1", "2"]
    assert "consumer c stands still for 19d" in limited.notes[0]
