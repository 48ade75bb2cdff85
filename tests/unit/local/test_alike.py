"""What is called the only one of its kind must be: a file taken for two would be a victim and needed at once."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.walking.marks import marks_of, may_be_alike

SHORT = st.text("ab/é", min_size=0, max_size=12)
LONG = st.builds(lambda head, tail: f"{head}{'/0123456789' * 9}{tail}", SHORT, SHORT)
CHUNKS = st.lists(
    st.lists(st.one_of(st.none(), SHORT, LONG, SHORT.map(lambda text: f"s3://bucket/{text}")), max_size=8), max_size=5
)


@settings(deadline=None)
@given(CHUNKS, st.integers(0, 3))
def test_a_text_has_one_mark_whatever_lies_beside_it(chunks: list[list[str | None]], skipped: int) -> None:
    column = pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks], pa.string()).slice(skipped)
    alone = [marks_of(pa.chunked_array([pa.array([text], pa.string())]))[0] for text in column.to_pylist()]
    assert marks_of(column).tolist() == alone


def test_letters_are_not_bytes() -> None:
    """Seven letters and eight bytes: long enough as it is, and not to be padded where its neighbour is."""
    column = pa.chunked_array([["s3:///é", "s3:///a"], ["s3:///é", "s3://bucket/x"]])
    assert may_be_alike(marks_of(column)).tolist() == [True, False, True, False]


@settings(deadline=None)
@given(CHUNKS, st.integers(0, 3))
def test_a_text_that_occurs_twice_is_never_called_single(chunks: list[list[str | None]], skipped: int) -> None:
    column = pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks], pa.string()).slice(skipped)
    texts = column.to_pylist()
    counts = Counter(texts)
    found = may_be_alike(marks_of(column))
    assert len(found) == len(texts)
    assert all(counts[text] == 1 for text, shared in zip(texts, found, strict=True) if not shared)


def test_it_tells_texts_apart_wherever_they_lie() -> None:
    """In chunks of other lengths, beside longer and shorter ones, with offsets of 64 bits."""
    many = [f"s3://bucket/t/data/{number:08x}.parquet" for number in range(5_000)]
    column = pa.chunked_array([many[:10], [many[3], "s3://bucket/" + "x" * 200], many[10:], ["", "short", many[4_000]]])
    for each in (column, column.cast(pa.large_string())):
        shared = may_be_alike(marks_of(each))
        twice = {text for text, is_shared in zip(each.to_pylist(), shared, strict=True) if is_shared}
        assert twice == {many[3], many[4_000]}


def test_nothing_is_alike_in_nothing() -> None:
    assert not len(may_be_alike(marks_of(pa.chunked_array([], pa.string()))))
