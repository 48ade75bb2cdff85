"""The fold at the end of a walk on Spark, without Spark: however rows are cut into batches, the plain fold's answer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.errors import UnreadableMetadata
from firnline.local.folding import _SAID, _Said, _settled
from firnline.local.rows import marks_of
from firnline.model.spans import Spans, numbers
from firnline.spark.folding import FOLDED, Settling
from firnline.spark.opening import told

ROOTS = 6
SPANS = st.integers(0, ROOTS - 1).flatmap(lambda start: st.tuples(st.just(start), st.integers(start + 1, ROOTS)))
SAID = st.tuples(
    st.integers(0, 9), st.integers(0, 1), st.sampled_from((1, 1, -1)), st.lists(SPANS, min_size=1, max_size=2)
)
"""A file, a fold, whether it is added or taken away, and by which roots that is read."""

SORTED = pa.schema([*FOLDED, ("place", pa.int64())])
NOTHING = {"key": None, "opens": False, "expects": None, "error": None}


def travelling(file: int, fold: int, op: int, spans: list[tuple[int, int]]) -> dict[str, Any]:
    """A row as it travels. Two files share a place, as two names may share a hash."""
    adds = {"size": file, "kind": "data"} if op > 0 else {"size": None, "kind": None}
    ends = [end for span in spans for end in span]
    return {**NOTHING, **adds, "identity": name(file), "fold": fold, "op": op, "spans": ends, "place": file // 2}


def name(file: int) -> str:
    return f"file:///t/{file}"


def plain(said: list[tuple[int, int, int, list[tuple[int, int]]]]) -> _Said:
    facts = [
        {"identity": name(file), "key": name(file), "size": file, "kind": "data", "opens": False} for file, *_ in said
    ]
    folds = [{"fold": fold, "op": op} for _, fold, op, _ in said]
    rows = pa.Table.from_pylist([one | other for one, other in zip(facts, folds, strict=True)], _SAID)
    spans = [(row, *span) for row, (*_, each) in enumerate(said) for span in sorted(each)]
    return _Said(rows, marks_of(rows.column("identity")), Spans(*map(numbers, zip(*spans, strict=True))))


def settled(rows: list[dict[str, Any]], cut: int, kept: int) -> list[dict[str, Any]]:
    rows = sorted(rows, key=lambda row: row["place"])
    batches = [pa.RecordBatch.from_pylist(rows[at : at + cut], schema=SORTED) for at in range(0, len(rows), cut)]
    return [row for batch in Settling(kept)(batches) for row in batch.to_pylist()]


def facts(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in ("identity", "key", "size", "kind", "needed")) for row in rows)


@settings(deadline=None)
@given(st.lists(SAID, min_size=1, max_size=40), st.integers(1, 9), st.integers(0, ROOTS))
def test_it_is_the_plain_fold_however_rows_are_cut(
    said: list[tuple[int, int, int, list[tuple[int, int]]]], cut: int, kept: int
) -> None:
    expected = facts(_settled(plain(said), kept).to_pylist())
    assert facts(settled([travelling(*each) for each in said], cut, kept)) == expected


def test_what_could_not_be_read_or_was_not_opened_is_never_garbage() -> None:
    damaged = {**travelling(1, 0, 1, []), "error": told(UnreadableMetadata("torn", hint="none"))}
    late = {**travelling(2, 0, 1, [(5, 6)]), "opens": True}
    found = settled([damaged, late, travelling(3, 0, 1, [(5, 6)])], 2, kept=1)
    assert [(row["identity"], row["needed"], bool(row["error"])) for row in found] == [
        (name(1), True, True),
        (name(2), True, True),
        (name(3), False, False),
    ]
