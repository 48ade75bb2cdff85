"""Spans of roots, and what is left after entries that add and take away: equal to counting root by root."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from firnline.model.spans import SpanEntries, above_zero, merged, numbers

ROOTS = 12
spans = st.tuples(st.integers(0, ROOTS - 1), st.integers(1, ROOTS)).map(
    lambda pair: (min(pair), max(pair[0] + 1, pair[1]))
)
owned = st.lists(st.tuples(st.integers(0, 4), spans), max_size=30)
said = st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), st.sampled_from([1, 1, -1]), spans), max_size=40)


@given(owned)
def test_merged_spans_cover_the_same_roots_and_never_touch(each: list[tuple[int, tuple[int, int]]]) -> None:
    found = merged([o for o, _ in each], [s for _, (s, _) in each], [e for _, (_, e) in each])
    covered = {(o, n) for o, (s, e) in each for n in range(s, e)}
    rows = list(zip(*(column.tolist() for column in found), strict=True))
    assert {(o, n) for o, s, e in rows for n in range(s, e)} == covered
    assert rows == sorted(rows)
    assert all(one[0] != other[0] or one[2] < other[1] for one, other in pairwise(rows))


@given(owned, st.lists(st.integers(0, 6), max_size=10))
def test_every_owner_finds_each_of_its_spans_once(each: list[tuple[int, tuple[int, int]]], asked: list[int]) -> None:
    found = merged([o for o, _ in each], [s for _, (s, _) in each], [e for _, (_, e) in each])
    places, chosen = found.of(numbers(asked))
    expected = [
        (place, number)
        for place, o in enumerate(asked)
        for number in range(len(found.owner))
        if found.owner[number] == o
    ]
    assert list(zip(places.tolist(), chosen.tolist(), strict=True)) == expected


@given(said)
def test_a_root_needs_what_was_added_once_more_than_removed(
    entries: list[tuple[int, int, int, tuple[int, int]]],
) -> None:
    counts: Counter[tuple[int, int, int]] = Counter()
    for file, fold, op, (start, end) in entries:
        for root in range(start, end):
            counts[file, fold, root] += op
    columns = [numbers(column) for column in zip(*((f, d, o, s, e) for f, d, o, (s, e) in entries), strict=True)]
    found = above_zero(4, SpanEntries(*(columns or [numbers([])] * 5)))
    spans_found = zip(*(column.tolist() for column in found), strict=True)
    who_needs = {(file, root) for (file, _, root), count in counts.items() if count > 0}
    assert {(file, root) for file, start, end in spans_found for root in range(start, end)} == who_needs
