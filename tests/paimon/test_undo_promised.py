"""An undo that was promised works; whether it will is told before the commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firnline.errors import RefusedForSafety
from harness.paimon.java_table import JavaTable
from harness.paimon.worlds import Paimon

from .small import EVERYTHING_OLD, Copy, quick_folder, row

LARGE = 2.0**60
"""Java 17 writes it with a digit more than it needs, so its folder is not the one that is derived."""


def _java_table(both: Paimon, folder: Path) -> Any:
    types, jvm = both.java.paimon("types.DataTypes"), both.java
    schema = jvm.paimon("schema.Schema").newBuilder().column("k", types.INT()).column("p", types.DOUBLE())
    schema = schema.partitionKeys(jvm.list(["p"])).options(jvm.map({"bucket": "-1"})).build()
    io, path = jvm.paimon("fs.local.LocalFileIO").create(), jvm.paimon("fs.Path")(str(folder))
    jvm.paimon("schema.SchemaManager")(io, path).createTable(schema)
    return jvm.paimon("table.FileStoreTableFactory").create(io, path)


def _write(both: Paimon, table: Any, number: int) -> None:
    """Replaces the table's rows by one."""
    row = both.java.paimon("data.GenericRow")(2)
    row.setField(0, number)
    row.setField(1, LARGE)
    writing = table.copy(both.java.map({"write-only": "true"}))
    write, commit = writing.newWrite("test"), writing.newCommit("test").withOverwrite(both.java.map({}))
    write.write(row)
    commit.commit(number, write.prepareCommit(True, number))
    write.close()
    commit.close()


@pytest.fixture
def doubles(both: Paimon) -> Iterator[Copy]:
    copy = Copy(quick_folder())
    table = _java_table(both, copy.folder / "t")
    for number in range(4):
        _write(both, table, number)
    yield copy
    copy.end()


def _undo_notes(copy: Copy) -> list[str]:
    notes: list[str] = copy.process().plan(copy.table, **EVERYTHING_OLD).to_json()["notes"]
    return [note for note in notes if "undo" in note]


def test_undo_finds_files_by_name_whose_folder_java_named_otherwise(doubles: Copy) -> None:
    assert next((doubles.folder / "t").glob("p=*")).name == "p=1.15292150460684698E18"
    assert _undo_notes(doubles) == []
    before = doubles.picture()
    ended = doubles.expire(grace="1m", sole_writer=False)
    assert doubles.picture() != before
    doubles.process().undo(str(ended.run.id))
    assert doubles.picture() == {**before, "/snapshot/EARLIEST": b"1"}


def test_that_an_undo_will_be_refused_is_told_before_the_commit(doubles: Copy) -> None:
    for path in (doubles.folder / "t").glob("p=*/bucket-0/*"):
        path.unlink()
    (note,) = _undo_notes(doubles)
    assert note.startswith("undo will be refused: ")
    ended = doubles.expire(grace="1m", sole_writer=False)
    with pytest.raises(RefusedForSafety, match="cannot be undone"):
        doubles.process().undo(str(ended.run.id))


def test_files_of_a_branch_that_was_altered_while_it_was_empty_are_found(both: Paimon, copy: Copy) -> None:
    table = JavaTable(both.java, copy.folder / "t")
    table.create_branch("other", None)
    io, path = both.java.paimon("fs.local.LocalFileIO").create(), both.java.paimon("fs.Path")(copy.table)
    change = both.java.paimon("schema.SchemaChange").setOption("data-file.path-directory", "deep")
    both.java.paimon("schema.SchemaManager")(io, path, "other").commitChanges(both.java.list([change]))
    for number in range(4):
        table.write("other", [row(number, "there")], {})
    assert any("/deep/" in each for each in copy.picture())
    assert copy.process().check(copy.table).sound
    before = copy.picture()
    ended = copy.expire(grace="1m", sole_writer=False)
    copy.process().undo(str(ended.run.id))
    undone = copy.picture()
    assert {path for path in before if path not in undone} == set()
    copy.expire()
    gone = before.keys() - copy.picture().keys()
    assert len([each for each in gone if each.startswith("/deep/")]) >= 2
    assert not copy.missing()
    assert len(table.rows.read(table.open("other"))) == 1
