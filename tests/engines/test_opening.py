"""What leaves an executor in a round of the walk, and how units are dealt to tasks."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pytest

from firnline.model.files import FileKind
from firnline.spark.opening import ROWS, merged
from firnline.spark.spread import placed

Row = tuple[str, str, bool, bool]


def batch(rows: Iterable[Row]) -> pa.RecordBatch:
    """Rows of (name, spelling, opens, needed)."""
    full = [(name, key, 7, FileKind.MANIFEST.value, opens, needed, None, None) for name, key, opens, needed in rows]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*full, strict=True), ROWS, strict=True)]
    return pa.record_batch(columns, schema=ROWS)


def shown(rows: pa.RecordBatch) -> list[Row]:
    names = ("identity", "key", "opens", "needed")
    return sorted(tuple(row[name] for name in names) for row in rows.to_pylist())


def test_units_that_several_lists_name_leave_once() -> None:
    named = [("l1", "l1", False, True), ("l2", "l2", False, True), ("m", "m", True, True), ("m", "m", True, True)]
    left = merged(batch(named))
    assert left.schema == ROWS
    assert shown(left) == [("l1", "l1", False, True), ("l2", "l2", False, True), ("m", "m", True, True)]


@pytest.mark.parametrize("other", [("m", "m", True, True), ("m", "s3a://m", True, False)])
def test_rows_that_differ_in_need_or_spelling_all_leave(other: Row) -> None:
    """Only where all rows of a unit meet can anybody say whether it is needed."""
    first = ("m", "m", True, False)
    assert shown(merged(batch([first, other]))) == sorted([first, other])


def test_files_are_not_looked_at() -> None:
    """They are millions, and nearly never named twice."""
    row = ("d", "d", False, True)
    assert shown(merged(batch([row, row]))) == [row, row]


@pytest.mark.parametrize(("units", "tasks"), [(0, 1), (1, 1), (10, 4), (64, 8), (65, 8), (5, 8)])
def test_neighbours_are_dealt_to_one_task_and_no_task_is_out_of_bounds(units: int, tasks: int) -> None:
    dealt = placed(pa.table({"key": [str(each) for each in range(units)]}), tasks).column("task").to_pylist()
    assert dealt == sorted(dealt)
    assert all(0 <= task < tasks for task in dealt)
    assert max((dealt.count(task) for task in dealt), default=0) <= -(-units // tasks)
