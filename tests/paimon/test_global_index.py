"""Indexes over a whole table lie in its folder of indexes, also where those of buckets lie beside their data."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from harness.paimon.java_table import JavaTable
from harness.paimon.rows import java_rows
from harness.paimon.shapes import MAIN, Shape
from harness.paimon.worlds import Paimon

from .aged import MEANT, age, disk
from .small import Copy, quick_folder, row

TRACKED = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}
PLACES = {"in its folder": {}, "beside data": {"index-file-in-data-file-dir": "true"}}

_numbers = count(1)


@pytest.fixture(params=PLACES)
def indexed(both: Paimon, request: pytest.FixtureRequest) -> Iterator[Copy]:
    """A table with an index that was dropped and one that is in use, both made by Paimon's Java."""
    copy = Copy(quick_folder())
    table = JavaTable(both.java, copy.folder / "t")
    table.create(Shape("java", False, ("p",), {**TRACKED, **PLACES[request.param]}))
    table.write(MAIN, [row(number, f"text {number}") for number in range(20)])
    _index(both, table, "v")
    _drop_indexes(both, table)
    _index(both, table, "v")
    table.write(MAIN, [row(21, "more")])
    table.write(MAIN, [row(22, "and more")])
    yield copy
    copy.end()


def _index(both: Paimon, table: JavaTable, column: str) -> None:
    opened = table.open()
    builder = both.java.paimon("globalindex.btree.BTreeGlobalIndexBuilder")(opened).withIndexField(column)
    with tempfile.TemporaryDirectory() as spill:
        disks = both.java.paimon("disk.IOManager").create(spill)
        splits = opened.newSnapshotReader().read().dataSplits()
        _commit(both, opened, [message for split in splits for message in builder.build(split, disks)])


def _drop_indexes(both: Paimon, table: JavaTable) -> None:
    opened = table.open()
    compacted = both.java.paimon("io.CompactIncrement").emptyIncrement()
    messages = []
    for entry in opened.store().newIndexFileHandler().scanEntries():
        gone = both.java.paimon("io.DataIncrement").deleteIndexIncrement(both.java.list([entry.indexFile()]))
        made = both.java.paimon("table.sink.CommitMessageImpl")
        messages.append(made(entry.partition(), entry.bucket(), None, gone, compacted))
    _commit(both, opened, messages)


def _commit(both: Paimon, opened: Any, messages: list[Any]) -> None:
    assert messages
    writing = opened.copy(both.java.map({"write-only": "true"}))
    commit = writing.newCommit("indexes")
    commit.commit(next(_numbers), both.java.list(messages))
    commit.close()


def _indexes(copy: Copy) -> set[str]:
    return {path.name for path in Path(copy.table).glob("index/*")}


def test_an_index_that_nothing_uses_goes_and_one_in_use_stays(both: Paimon, indexed: Copy) -> None:
    assert len(_indexes(indexed)) == 2
    rows = java_rows(JavaTable(both.java, Path(indexed.table)))
    assert indexed.process().check(indexed.table).sound
    before = indexed.picture()
    ended = indexed.expire(grace="1m", sole_writer=False)
    indexed.process().undo(str(ended.run.id))
    assert {**before, "/snapshot/EARLIEST": b"1"} == indexed.picture()
    ended = indexed.expire()
    assert set(ended.outcomes) == {"deleted"}
    assert len(_indexes(indexed)) == 1
    assert indexed.process().check(indexed.table).sound
    assert not indexed.missing()
    assert java_rows(JavaTable(both.java, Path(indexed.table))).items() <= rows.items()


def test_a_search_takes_none_that_is_needed(indexed: Copy) -> None:
    age(disk(Path(indexed.table)))
    before = disk(Path(indexed.table))
    indexed.process().orphans(indexed.table, **MEANT)
    assert disk(Path(indexed.table)) == before
