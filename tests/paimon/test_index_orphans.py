"""Orphans among indexes, deletion vectors and statistics: what a dropped branch alone had goes, all else stays."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from firnline.errors import RefusedForSafety
from harness.paimon import layout
from harness.paimon.java_table import JavaTable
from harness.paimon.rows import java_rows
from harness.paimon.shapes import MAIN, Row, Shape
from harness.paimon.worlds import Paimon

from .aged import MEANT, a_name, age, disk
from .small import Copy, quick_folder, row

VECTORS = {"bucket": "1", "deletion-vectors.enabled": "true"}
DYNAMIC = {"bucket": "-1"}
OPTION = "index-file-in-data-file-dir"
BESIDE = {**VECTORS, OPTION: "true"}
KINDS = {"vectors": VECTORS, "dynamic": DYNAMIC, "beside": BESIDE}


@pytest.fixture(params=["vectors", *(pytest.param(each, marks=pytest.mark.full) for each in ("dynamic", "beside"))])
def dropped(both: Paimon, request: pytest.FixtureRequest) -> Iterator[Copy]:
    """A table whose branch had indexes and statistics of its own, and was dropped by Paimon; everything is old."""
    folder = quick_folder()
    table = JavaTable(both.java, folder / "t")
    table.create(Shape("java", True, ("p",), KINDS[request.param]))
    table.write(MAIN, [plain(1, "one"), plain(2, "two")])
    table.compact(MAIN, True)
    table.write(MAIN, [plain(1, "uno")])
    table.compact(MAIN, False)
    table.tag(MAIN, "base", max(layout.snapshots(folder / "t", MAIN)))
    table.create_branch("side", "base")
    for text in ("a", "b"):
        table.write("side", [plain(2, text), plain(3, text)])
        table.compact("side", False)
        table.analyze("side")
    table.write(MAIN, [plain(2, "deux")])
    table.compact(MAIN, False)
    table.analyze(MAIN)
    table.drop_branch("side")
    age(disk(folder / "t"))
    yield Copy(folder)
    shutil.rmtree(folder)


def plain(number: int, text: str) -> Row:
    """Paimon 1.4 cannot look up rows in a partition whose value has a slash in it."""
    return row(number, text, "x")


def kinds(paths: set[str]) -> set[str]:
    return {os.path.basename(path).partition("-")[0] for path in paths}


@pytest.mark.sampled(1)
def test_what_a_dropped_branch_alone_had_goes(both: Paimon, dropped: Copy) -> None:
    rows = java_rows(JavaTable(both.java, Path(dropped.table)))
    there, unnamed = disk(Path(dropped.table)), dropped.reader().unnamed()
    assert {"index", "stat", "data", "manifest"} <= kinds(unnamed)
    dropped.process().orphans(dropped.table, **MEANT)
    assert there - disk(Path(dropped.table)) == unnamed
    assert {"index", "stat"} <= kinds(disk(Path(dropped.table))), "what is needed is still there"
    assert not dropped.missing()
    assert java_rows(JavaTable(both.java, Path(dropped.table))) == rows
    assert dropped.process().check(dropped.table).sound


def test_paimon_itself_finds_the_same(both: Paimon, dropped: Copy) -> None:
    """Its own search of a copy, for real."""
    unnamed = {path.removeprefix(dropped.table) for path in dropped.reader().unnamed()}
    copy = Copy.of(dropped.folder, "paimon")
    age(disk(Path(copy.table)))
    there = disk(Path(copy.table))
    table = JavaTable(both.java, Path(copy.table))
    both.java.paimon("operation.LocalOrphanFilesClean")(table.open(), 2**42, False).clean()
    assert {path.removeprefix(copy.table) for path in there - disk(Path(copy.table))} == unnamed
    copy.end()


@pytest.mark.sampled(1)
def test_young_ones_stay(dropped: Copy) -> None:
    unnamed = dropped.reader().unnamed()
    young = {path for path in unnamed if kinds({path}) <= {"index", "stat"}}
    age(young, days=0.9)
    dropped.process().orphans(dropped.table, **MEANT)
    assert {path for path in unnamed if Path(path).exists()} == young


def test_a_needed_index_in_another_folder_stops_the_search(dropped: Copy) -> None:
    """Names are unique: where a needed one lies elsewhere than we think, nothing goes."""
    table = Path(dropped.table)
    needed = {path for each in dropped.reader().reachable().values() for path in each.index}
    for path in needed:
        moved = shutil.move(path, _made(table / "index") / os.path.basename(path))
        age([str(moved)])  # a move makes it young
    if not side_objects(dropped):
        schema = table / "schema/schema-0"
        schema.write_text(schema.read_text().replace('"options" : {', f'"options" : {{ "{OPTION}" : "true",', 1))
    before = disk(table)
    with pytest.raises(RefusedForSafety, match="index-"):
        dropped.process().orphans(dropped.table, **MEANT)
    assert disk(table) == before


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.sampled(1)
def test_an_index_in_a_bucket_is_nobodys_where_the_table_has_none_there(dropped: Copy) -> None:
    bucket = next(Path(dropped.table).glob("p=*/bucket-0"))
    stray = bucket / a_name("index-")
    stray.write_bytes(b"whose?")
    age([str(stray)])
    dropped.process().orphans(dropped.table, **MEANT)
    assert stray.exists() != side_objects(dropped)


def side_objects(copy: Copy) -> bool:
    return OPTION in (Path(copy.table) / "schema/schema-0").read_text()
