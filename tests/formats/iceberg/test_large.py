"""The generator of large tables: what it writes is Iceberg to others, and its own count of victims is right."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import fastavro
import pytest

from firnline.lake import open_lake
from harness.large.tables import LargeShape, LargeTable

SHAPES = [
    LargeShape(12, 3, live=4, cadence=1, columns=2, refs=1, partitions=2),
    LargeShape(30, 5, live=8, cadence=3, columns=20, refs=4, partitions=3),
    LargeShape(9, 70, live=20, cadence=5, columns=3, refs=2, partitions=1),
]


def planned(table: LargeTable, last: int) -> dict[str, int]:
    lake = open_lake(engine="local")
    view = lake.plan(str(table.folder), older_than=table.timestamp(last) + 1, retain_last=1, blast_radius=1.0)
    return {kind.value: tally.files for kind, tally in view.plan.victims.by_kind.items()}


def expected(table: LargeTable, last: int) -> dict[str, int]:
    return {kind: count for kind, count in table.shape.victims(last).items() if count}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_victims_are_those_that_the_shape_has(tmp_path: Path, shape: LargeShape) -> None:
    table = LargeTable(tmp_path / "t", shape)
    table.write()
    for last in (shape.snapshots // 3, shape.snapshots - 1):
        assert planned(table, last) == expected(table, last)


def test_another_reader_sees_every_file_that_was_written(tmp_path: Path) -> None:
    table = LargeTable(tmp_path / "t", SHAPES[1])
    table.write(data=True)
    named = {
        entry["data_file"]["file_path"].removeprefix("file://")
        for manifest in (table.folder / "metadata").glob("*-m?.avro")
        for entry in fastavro.reader(io.BytesIO(manifest.read_bytes()))
    }
    assert named == {str(path) for path in (table.folder / "data").rglob("*.parquet")}
    assert len(named) == table.shape.snapshots * table.shape.files


def test_a_table_that_grew_keeps_what_it_had_and_has_the_victims_of_its_shape(tmp_path: Path) -> None:
    shape = SHAPES[1]
    table = LargeTable(tmp_path / "t", replace(shape, snapshots=20))
    table.write()
    before = {path.name: path.read_bytes() for path in (table.folder / "metadata").glob("*.avro")}
    grown = LargeTable(table.folder, shape)
    grown.write(21, version=2)
    after = {path.name: path.read_bytes() for path in (table.folder / "metadata").glob("*.avro")}
    assert before.items() <= after.items()
    assert planned(grown, 15) == expected(grown, 15)
