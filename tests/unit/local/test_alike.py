"""What is called the only one of its kind must be: a file taken for two would be a victim and needed at once."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.local.alike import may_be_alike

SHORT = st.text("ab/é", min_size=0, max_size=12)
LONG = st.builds(lambda head, tail: f"{head}{'/0123456789' * 9}{tail}", SHORT, SHORT)
CHUNKS = st.lists(
    st.lists(st.one_of(SHORT, LONG, SHORT.map(lambda text: f"s3://bucket/{text}")), max_size=8), max_size=5
)


@given(CHUNKS, st.integers(0, 3))
def test_a_text_that_occurs_twice_is_never_called_single(chunks: list[list[str]], skipped: int) -> None:
    column = pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks], pa.string()).slice(skipped)
    found = may_be_alike(column)
    texts = column.to_pylist()
    counts = Counter(texts)
    if found is not None:
        assert len(found) == len(texts)
        assert {text for text, shared in zip(texts, found, strict=True) if not shared} <= {
            text for text in texts if counts[text] == 1
        }


def test_it_tells_most_texts_apart_wherever_they_lie() -> None:
    """In chunks of other lengths, beside longer and shorter ones, in the middle of an array."""
    many = [f"s3://bucket/t/data/{number:08x}.parquet" for number in range(5_000)]
    column = pa.chunked_array([many[:10], [many[3], "s3://bucket/" + "x" * 200], many[10:], [many[4_000]]])
    found = may_be_alike(column)
    assert found is not None
    twice = {text for text, shared in zip(column.to_pylist(), found, strict=True) if shared}
    assert twice == {many[3], many[4_000]}


@pytest.mark.parametrize("texts", [["short", "s3://bucket/x"], ["s3://bucket/x", None], ["s3://bucket/x"] * 8])
def test_where_it_cannot_tell_it_says_so(texts: list[str | None]) -> None:
    assert may_be_alike(pa.chunked_array([pa.array(texts, pa.string())])) is None


def test_nothing_is_alike_in_nothing() -> None:
    found = may_be_alike(pa.chunked_array([], pa.string()))
    assert found is not None
    assert not len(found)
