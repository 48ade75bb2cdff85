"""Names as text: every name reads back as itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import UsageError
from firnline.journal.layout import RunId, names_run
from firnline.model.names import is_location, parts_of, written
from firnline.ports.catalogs import TableName

PARTS = st.text(st.sampled_from('ab."/@ `\n\u00e4'), max_size=6)


@given(st.lists(PARTS, min_size=1, max_size=5))
def test_parts_read_back_as_they_were(parts: list[str]) -> None:
    text = written(parts)
    assert parts_of(text) == tuple(parts)
    assert not is_location(text)


@given(PARTS.filter(bool), st.lists(PARTS, max_size=3), PARTS)
def test_a_run_of_a_table_names_that_table(catalog: str, levels: list[str], name: str) -> None:
    table = TableName.of_parts(catalog, (*levels, name))
    run = RunId.new(str(table), 0)
    assert RunId.parse(str(run)) == run
    assert names_run(str(run))
    assert not names_run(str(table))
    first, *rest = parts_of(run.table)
    assert TableName.of_parts(first, rest) == table


@given(st.lists(PARTS, min_size=1, max_size=3), st.lists(PARTS, min_size=1, max_size=3))
def test_two_names_have_two_texts(one: list[str], other: list[str]) -> None:
    assert (written(one) == written(other)) is (one == other)


def test_plain_names_are_plain() -> None:
    assert str(TableName("lake", ("eu", "west"), "t-1 x")) == "lake.eu.west.t-1 x"
    assert str(TableName("lake", (), "t")) == 'lake."".t'
    assert str(TableName.at("s3://b/t")) == "s3://b/t"


@pytest.mark.parametrize("text", ['"a', '"a"b', 'x."a""', '"a"b.c'])
def test_a_quote_that_does_not_end_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not closed"):
        parts_of(text)


@pytest.mark.parametrize("text", ["/a/b", "s3://b/t", "./t", '/a/"b.c"', 'a/"b'])
def test_paths_are_locations(text: str) -> None:
    assert is_location(text)


@pytest.mark.parametrize("text", ["/lake/me@work/t", "s3://b/x@y/t", 'lake.db."a@b"'])
def test_an_at_alone_makes_no_run(text: str) -> None:
    assert not names_run(text)
    assert names_run(str(RunId.new(text, 0)))
