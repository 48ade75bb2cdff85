"""A check finds out that a branch lost a schema which no snapshot names any more, and live files still do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from firnline.cli.main import run as firnline
from harness.paimon import layout
from harness.paimon.java_table import JavaTable
from harness.paimon.shapes import COLUMNS, MAIN, Shape
from harness.paimon.worlds import Paimon

from .small import Copy, quick_folder, row


class Altered:
    """A table of Java's that got a column after its first rows; a branch was made before."""

    def __init__(self, both: Paimon, folder: Path) -> None:
        self.jvm, self.table, self.copy = both.java, JavaTable(both.java, folder / "t"), Copy(folder)
        self.table.create(Shape("java", True, (), {"bucket": "1"}))
        self.table.write(MAIN, [row(1, "before")])
        self.table.tag(MAIN, "first", 1)
        self.table.create_branch("side", "first")
        self._add_column()
        self.write(2)
        self.table.drop_tag(MAIN, "first")
        self.copy.expire(retain_last=1)
        assert layout.snapshots(self.table.folder, MAIN) == [2]

    def _add_column(self) -> None:
        column = self.jvm.paimon("schema.SchemaChange").addColumn("more", self.jvm.paimon("types.DataTypes").INT())
        manager = self.jvm.paimon("schema.SchemaManager")
        folder = self.jvm.paimon("fs.Path")(str(self.table.folder))
        manager(self.jvm.paimon("fs.local.LocalFileIO").create(), folder).commitChanges(self.jvm.list([column]))

    def write(self, key: int, *, over: bool = False) -> None:
        """Adds a row with the new column; `over`: in the place of all others."""
        table = self.table.open(MAIN, {"write-only": "true"})
        made = self.jvm.paimon("data.GenericRow")(len(COLUMNS) + 1)
        made.setField(0, key)
        made.setField(len(COLUMNS), 7)
        spill = self.jvm.paimon("disk.IOManager").create(str(self.copy.folder))
        write, commit = table.newWrite("after").withIOManager(spill), table.newCommit("after")
        write.write(made)
        commit = commit.withOverwrite(self.jvm.map({})) if over else commit
        commit.commit(key, write.prepareCommit(True, key))
        write.close()
        commit.close()

    def keys(self, branch: str = MAIN) -> list[int]:
        """Returns the keys that Java reads. Raises Py4JJavaError where it cannot."""
        table = self.table.open(branch)
        read, found = table.newRead(), []
        for split in table.newScan().plan().splits():
            rows = self.jvm.paimon("reader.RecordReaderIterator")(read.createReader(split))
            while rows.hasNext():
                found.append(rows.next().getInt(0))
            rows.close()
        return sorted(found)

    def checked(self) -> tuple[bool, list[dict[str, Any]]]:
        found = self.copy.process().check(self.copy.table).to_json()
        return found["sound"], found["listed"]


@pytest.fixture
def altered(both: Paimon) -> Iterator[Altered]:
    folder = quick_folder()
    yield Altered(both, folder)
    shutil.rmtree(folder)


def test_a_table_that_was_altered_is_sound(altered: Altered) -> None:
    assert altered.keys() == [1, 2]
    assert altered.checked() == (True, [])


def test_check_names_a_schema_that_live_files_were_written_with(
    altered: Altered, capsys: pytest.CaptureFixture[str]
) -> None:
    (altered.table.folder / "schema/schema-0").unlink()
    with pytest.raises(Py4JJavaError):
        altered.keys()
    fault = {
        "path": f"{altered.table.folder}/schema",
        "kind": "metadata",
        "problem": "has no schema-0, which snapshot 2 was written with",
    }
    assert altered.checked() == (False, [fault])
    assert firnline(["check", altered.copy.table]) == 1
    said = capsys.readouterr().out
    assert fault["path"] in said
    assert fault["problem"] in said


def test_a_schema_that_only_removed_files_were_written_with_is_not_missed(altered: Altered) -> None:
    """The manifests still name them, to take them away."""
    altered.write(3, over=True)
    altered.copy.expire(retain_last=1)
    (altered.table.folder / "schema/schema-0").unlink()
    assert altered.keys() == [3]
    assert altered.checked() == (True, [])


def test_a_branch_needs_schemas_of_its_own(altered: Altered) -> None:
    """Every branch has a folder of schemas: that another one has the schema does not help."""
    altered.table.drop_branch("side")
    altered.table.tag(MAIN, "second", 2)
    altered.table.create_branch("side", "second")
    assert altered.keys("side") == [1, 2]
    place = altered.table.folder / "branch/branch-side/schema"
    (place / "schema-0").unlink()
    assert altered.keys() == [1, 2]
    with pytest.raises(Py4JJavaError):
        altered.keys("side")
    sound, (fault,) = altered.checked()
    assert not sound
    assert fault["path"] == str(place)
    assert fault["problem"] == "has no schema-0, which snapshot side:2 was written with"
