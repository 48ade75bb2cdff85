"""One row per file, whatever the rows of a file say and however their names were marked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.local.rows import ROWS, each_once, numbered
from firnline.model.files import FileKind
from firnline.walking.marks import marks_of

NAMES = ("s3://bucket/t/a.parquet", "s3://bucket/t/b.parquet", f"s3://bucket/{'x' * 90}/c", "s3://bucket/t/é")
SIZES = st.one_of(st.none(), st.integers(0, 2))
ROW = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from(["", "", "", "?1", "?2"]),
    SIZES,
    st.sampled_from([FileKind.DATA, FileKind.DATA, FileKind.CHANGELOG]),
    st.booleans(),
    st.booleans(),
    SIZES,
)
PARTS = st.lists(st.lists(ROW, max_size=6), max_size=4)


def _table(parts: Iterable[Iterable[tuple[Any, ...]]]) -> pa.Table:
    made = [pa.Table.from_pylist([_row(each) for each in part], ROWS) for part in parts]
    return pa.concat_tables([ROWS.empty_table(), *made])


def _row(said: tuple[Any, ...]) -> dict[str, Any]:
    name, spelled, *facts = said
    return dict(zip(ROWS.names, (name, name + spelled, *facts), strict=True))


def _once(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """One row of all that say something of one file, without anything that the code under test has."""
    found: dict[str, Any] = {"identity": rows[0]["identity"]}
    for name, choose in {"key": min, "size": max, "kind": min, "opens": max, "needed": max, "expects": max}.items():
        found[name] = choose((each[name] for each in rows if each[name] is not None), default=None)
    return found


def _marks(texts: pa.ChunkedArray, kinds: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Marks of so few kinds that texts which differ share them; 0: those that texts really have."""
    return marks_of(texts) % np.uint64(kinds) if kinds else marks_of(texts)


@settings(deadline=None)
@given(PARTS, st.integers(0, 3))
def test_each_file_has_one_row_with_the_first_and_largest_of_all_that_is_said(parts: Any, kinds: int) -> None:
    rows = _table(parts)
    names = rows.column("identity")
    found = each_once(rows, numbered(names, _marks(names, kinds))[0])
    by_name: dict[str, list[dict[str, Any]]] = {}
    for each in rows.to_pylist():
        by_name.setdefault(each["identity"], []).append(each)
    assert found.schema == ROWS
    assert sorted(found.to_pylist(), key=lambda each: each["identity"]) == [
        _once(by_name[each]) for each in sorted(by_name)
    ]


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from([*NAMES, "", "short", None]), max_size=6), max_size=4), st.integers(0, 3))
def test_rows_have_one_number_where_their_texts_are_one(chunks: Any, kinds: int) -> None:
    texts = pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks], pa.string())
    found, count = numbered(texts, _marks(texts, kinds))
    pairs = set(zip(texts.to_pylist(), found.tolist(), strict=True))
    assert len(pairs) == len({text for text, _ in pairs}) == len({number for _, number in pairs}) == count
    assert {number for _, number in pairs} == set(range(count))


@pytest.mark.parametrize("rows", [32_768, 32_769, 70_000])
def test_texts_are_compared_to_the_last_one(rows: int) -> None:
    """Of very many pairs the last one differs, under marks that say the opposite."""
    texts = pa.chunked_array([pa.repeat(NAMES[0], rows), pa.array([NAMES[1]])])
    found, count = numbered(texts, np.zeros(rows + 1, dtype=np.uint64))
    assert count == 2
    assert len(set(found[:-1].tolist())) == 1
    assert found[-1] != found[0]
