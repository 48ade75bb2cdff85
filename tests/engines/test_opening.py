"""What leaves an executor in a round of the walk, and how units are dealt to tasks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from firnline.model.files import FileKind
from firnline.model.spans import Spans, numbers
from firnline.ports.expanding import Expanded
from firnline.spark.rounds import Opening
from firnline.spark.spread import Spread, placed
from firnline.spark.travelling import FOLDING, ROWS, Parts, named
from firnline.walking.axis import Axis, WalkMeans

Row = tuple[int, str, str, bool]
"""The number of the unit that names it, its name, its spelling, and whether it is opened."""


def left(rows: list[Row], spans: list[tuple[int, int, int]]) -> list[tuple[str, str | None, list[int]]]:
    """What leaves of these rows; `spans` are those of the units that name them."""
    kind = FileKind.MANIFEST.value
    facts = {"identity": [row[1] for row in rows], "key": [row[2] for row in rows], "size": [7] * len(rows)}
    batch = pa.record_batch({**facts, "kind": [kind] * len(rows), "opens": [row[3] for row in rows]})
    answer = Expanded(batch, np.array([row[0] for row in rows], dtype=np.int64))
    found = named(answer, Spans(*map(numbers, zip(*spans, strict=True))), 2)
    assert found.schema == ROWS
    rows_left = ((row["identity"], row["key"], row["spans"]) for row in found.to_pylist())
    return sorted(rows_left, key=lambda row: (row[0], row[2]))


def test_units_that_several_lists_name_leave_once_with_the_spans_of_all() -> None:
    rows = [(0, "l1", "l1", False), (1, "l2", "l2", False), (0, "m", "m", True), (1, "m", "m", True)]
    spans = [(0, 0, 1), (1, 1, 2), (1, 5, 6)]
    assert left(rows, spans) == [("l1", None, [0, 1]), ("l2", None, [1, 2, 5, 6]), ("m", None, [0, 2, 5, 6])]


def test_rows_that_differ_in_spelling_all_leave() -> None:
    """Only where all rows of a unit meet can anybody say which is meant."""
    rows = [(0, "m", "m", True), (1, "m", "s3a://m", True)]
    assert left(rows, [(0, 0, 1), (1, 1, 2)]) == [("m", None, [0, 1]), ("m", "s3a://m", [1, 2])]


def test_files_are_not_looked_at() -> None:
    """They are millions, and nearly never named twice."""
    rows = [(0, "d", "d", False), (0, "d", "d", False)]
    assert left(rows, [(0, 0, 1)]) == [("d", None, [0, 1])] * 2


@pytest.mark.parametrize(("units", "tasks"), [(0, 1), (1, 1), (10, 4), (64, 8), (65, 8), (5, 8)])
def test_neighbours_are_dealt_to_one_task_and_no_task_is_out_of_bounds(units: int, tasks: int) -> None:
    dealt = placed(pa.table({"key": [str(each) for each in range(units)]}), tasks).column("task").to_pylist()
    assert dealt == sorted(dealt)
    assert all(0 <= task < tasks for task in dealt)
    assert max((dealt.count(task) for task in dealt), default=0) <= -(-units // tasks)


def test_what_is_said_twice_counts_twice_in_the_last_round() -> None:
    """A file that is added twice and taken away once is there: spans that lie over each other are no mistake."""
    means = WalkMeans(Axis(*(numbers([at, at + 9]) for at in (0, 2, 4))), (), numbers([]), folds=True)
    row = {"identity": "file:///i", "key": None, "size": 1, "kind": "index", "opens": False, "expects": None}
    said = {**row, "error": None, "fold": 0, "op": 1, "spans": [10, 12, 0, 2, 1, 3, 0, 2]}
    last = Opening(means, (FileKind.MANIFEST,), "look", Spread(1, 1, 1), Parts.of(1, [1, 1]))
    (passed,) = last([pa.RecordBatch.from_pylist([said], schema=ROWS)])
    assert passed.schema == FOLDING
    assert [each["spans"] for each in passed.to_pylist()] == [[0, 2, 0, 2, 1, 3], [10, 12]]
