"""What leaves an executor in a round of the walk, and how units are dealt to tasks."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.model.files import FileKind
from firnline.model.spans import Spans, numbers
from firnline.ports.expanding import Expanded
from firnline.spark.packets import LOST, SLICES, UNITS, Packing, each_packet, packed, packets, unpacked
from firnline.spark.rounds import Opening
from firnline.spark.spread import Spread, placed
from firnline.spark.telling import lost_walks, told_of
from firnline.spark.travelling import FOLDING, ROWS, Parts, named, tasks_of, to_parts
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
    dealt = placed(units, tasks).tolist()
    assert len(dealt) == units
    assert dealt == sorted(dealt)
    assert all(0 <= task < tasks for task in dealt)
    assert max((dealt.count(task) for task in dealt), default=0) <= -(-units // tasks)


MEANS = WalkMeans(Axis(*(numbers([at, at + 9]) for at in (0, 2, 4))), (), numbers([]), folds=True)
INDEX = {"identity": "file:///i", "key": None, "size": 1, "kind": "index", "opens": False, "expects": None}
SAID = {**INDEX, "fold": 0, "op": 1, "spans": [10, 12, 0, 2, 1, 3, 0, 2]}
PARTS = Parts.of(3, [1, 1])


def opening(*rounds: FileKind, tasks: int = 1) -> Opening:
    return Opening(MEANS, [(kind,) for kind in rounds], "look", Spread(tasks, 1, PARTS.all), PARTS)


def units_packet(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return packets([0], [UNITS], [packed(pa.RecordBatch.from_pylist(rows, schema=ROWS))])


def test_what_is_said_twice_counts_twice_when_it_goes_to_be_judged() -> None:
    """A file that is added twice and taken away once is there: spans that lie over each other are no mistake."""
    (passed,) = opening(FileKind.MANIFEST)([units_packet([SAID])])
    rows = [row for _, data in each_packet(passed) for row in unpacked(data).to_pylist()]
    assert all(unpacked(data).schema == FOLDING for _, data in each_packet(passed))
    spans = {row["walk"]: row["spans"] for row in rows}
    assert (len(rows), spans) == (2, {0: [0, 2, 0, 2, 1, 3], 1: [10, 12]})


def test_a_row_that_nobody_reads_gives_its_place_to_no_other() -> None:
    rows = pa.RecordBatch.from_pylist([{**INDEX, "identity": f"s3://b/{row}", "fold": 0, "op": 1} for row in range(2)])
    read_by_two = Spans(*map(numbers, ([1, 1], [0, 9], [1, 10])))
    for folds in (True, False):
        gone, _ = to_parts(rows, read_by_two, MEANS.axis, PARTS, folds)
        assert gone.column("identity").to_pylist() == ["s3://b/1"] * 2


def test_a_walk_that_is_lost_is_told_to_every_task_of_the_next_step() -> None:
    """A task that is run again tells it when others are done already; those that are not must hear of it."""
    lost = packets([0, 0], [LOST, LOST], [told_of({1: "gone"}), told_of({0: "torn"})])
    for step, everyone in ((opening(FileKind.MANIFEST), 3), (opening(FileKind.INDEX, FileKind.MANIFEST, tasks=5), 5)):
        (telling,) = step([lost])
        assert telling.column("target").to_pylist() == list(range(everyone))
        assert [(of, lost_walks(data)) for of, data in each_packet(telling)] == [
            (LOST, {0: "torn", 1: "gone"})
        ] * everyone


def test_files_that_are_packed_pass_a_round_as_they_are() -> None:
    passing = packets([2, 0], [3, 0], [b"of files", b"of others"])
    assert pa.Table.from_batches(opening(FileKind.MANIFEST)([passing])).equals(pa.Table.from_batches([passing]))


@settings(deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(1, 7), st.randoms())
def test_whatever_the_order_of_rows_units_are_dealt_alike(units: list[int], tasks: int, chance: Random) -> None:
    """A task that runs again gets its rows in another order, some of them twice: each unit must go where it went."""
    names = [f"s3://b/{unit}" for unit in units]
    went = dict(zip(names, tasks_of(pa.array(names), tasks).tolist(), strict=True))
    chance.shuffle(names)
    assert all(0 <= task < tasks for task in went.values())
    assert [went[name] for name in names] == tasks_of(pa.array(names), tasks).tolist()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), max_size=60), st.booleans())
def test_packing_loses_nothing_and_keeps_cells_apart(rows: list[tuple[int, int]], sliced: bool) -> None:
    packing = Packing(sliced=sliced)
    batches = [pa.record_batch({"row": [number]}) for number, _ in rows]
    came = [
        packet for batch, (_, cell) in zip(batches, rows, strict=True) for packet in packing.add(batch, numbers([cell]))
    ]
    found = [
        (target * (SLICES if sliced else 1) + max(of, 0), row)
        for packet in [*came, *packing.rest()]
        for target, of, data in zip(*packet.to_pydict().values(), strict=True)
        for row in unpacked(data).column("row").to_pylist()
    ]
    assert sorted(found) == sorted((cell, number) for number, cell in rows)


def test_all_rows_of_a_small_table_are_judged_at_once_and_those_of_a_large_one_in_slices() -> None:
    parts = Parts.of(4, [1_000, 400_000, 0])
    paths = pa.array([f"/data/{number}" for number in range(1_000)])
    cells = [set(parts.cells(np.full(len(paths), walk), paths).tolist()) for walk in range(3)]
    assert len(cells[0]) == 1
    assert len(cells[1]) == parts.share[1] * SLICES
    assert len(cells[2]) == parts.share[2] * SLICES, "it is not known how many files it has"
    assert all(0 <= cell < parts.all * SLICES for of in cells for cell in of)
