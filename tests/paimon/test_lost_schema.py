"""Undo on a table that lost a schema: what comes back can be read, and the range of snapshots has no hole."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from firnline.errors import RefusedForSafety
from harness.paimon import layout
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon

from .small import Copy, quick_folder, row


@pytest.fixture
def copy(both: Paimon) -> Iterator[Copy]:
    """A table with two snapshots of each of three schemas."""
    folder = quick_folder()
    table = JavaTable(both.java, folder / "t")
    table.create(Shape("java", True, (), {"bucket": "1"}))
    for schema in range(3):
        for number in range(2):
            table.write(MAIN, [row(number, f"{schema}")])
        if schema < 2:
            table.set_option("comment", f"after {schema}")
    yield Copy(folder)
    shutil.rmtree(folder)


def snapshots(copy: Copy) -> list[int]:
    return layout.snapshots(copy.folder / "t", MAIN)


def test_an_undo_that_would_leave_a_hole_is_refused(copy: Copy) -> None:
    run = copy.expire(retain_last=1, grace="1h").id
    left = snapshots(copy)
    (copy.folder / "t/schema/schema-1").unlink()
    with pytest.raises(RefusedForSafety, match="schema-1"):
        copy.process().undo(run)
    assert snapshots(copy) == left
