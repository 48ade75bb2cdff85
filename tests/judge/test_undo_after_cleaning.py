"""An undo after Iceberg's own clean-up of the metadata: what comes back can be read, or nothing comes back.

Java's `cleanExpiredMetadata` drops every schema and partition spec that no snapshot in the table needs. It knows
nothing of a run that can still be undone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from firnline.app.places import places_of
from firnline.errors import RefusedForSafety
from firnline.lake import Lake
from firnline.policy.parse import Section

from .jvm import Jvm

pytestmark = pytest.mark.xdist_group("judge-0")  # shares that group's JVM

SCHEMAS, SPECS = "schemas", "partition-specs"


@dataclass
class JavaTable:
    """A path table that Java writes, with another schema and another partition spec in every snapshot."""

    jvm: Jvm
    folder: Path

    def __post_init__(self) -> None:
        self.tables = self.jvm.iceberg("hadoop.HadoopTables")(self.jvm.java("org.apache.hadoop.conf.Configuration")())
        field, types = self.jvm.iceberg("types.Types.NestedField"), self.jvm.iceberg
        columns = [
            field.required(1, "id", types("types.Types.LongType").get()),
            field.optional(2, "p", types("types.Types.StringType").get()),
        ]
        schema = self.jvm.iceberg("Schema")(self.jvm.array("org.apache.iceberg.types.Types.NestedField", columns))
        spec = self.jvm.iceberg("PartitionSpec").builderFor(schema).identity("p").build()
        self.table = self.tables.create(schema, spec, self.jvm.map({"format-version": "2"}), self.location)

    @property
    def location(self) -> str:
        return str(self.folder / "t")

    def write(self, name: str) -> int:
        """Returns a new snapshot that needs nothing that the table had before: all that was is overwritten, and one
        more commit lets go of the manifests that say so.
        """
        always = self.jvm.iceberg("expressions.Expressions").alwaysTrue()
        self.table.newOverwrite().overwriteByRowFilter(always).addFile(self.file(f"{name}-1")).commit()
        self.table.newAppend().appendFile(self.file(f"{name}-2")).commit()
        return int(self.table.currentSnapshot().snapshotId())

    def file(self, name: str) -> Any:
        path = self.folder / "t" / "data" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 100)
        spec = self.table.spec()
        made = self.jvm.iceberg("DataFiles").builder(spec).withPath(str(path)).withFileSizeInBytes(100)
        named = "/".join(f"{each.name()}=1" for each in spec.fields())
        return made.withRecordCount(1).withPartitionPath(named).build()

    def evolve(self, column: str, part: str) -> None:
        kind = self.jvm.iceberg("types.Types.LongType").get()
        self.table.updateSchema().addColumn(column, kind).commit()
        old = next(iter(self.table.spec().fields())).name()
        self.table.updateSpec().removeField(old).addField(part).commit()

    def clean(self) -> None:
        """What a nightly job of another engine does."""
        self.table.refresh()
        self.table.expireSnapshots().cleanExpiredMetadata(True).commit()

    def document(self) -> dict[str, Any]:
        self.table.refresh()
        return self.jvm.document(self.table.operations().current())

    def read(self, snapshot: int) -> list[str]:
        """Returns the files of a snapshot as Java plans to read them, by its own schema and spec. Raises as it does."""
        table = self.tables.load(self.location)
        schemas = self.jvm.iceberg("util.SnapshotUtil").schemaFor(table, snapshot)
        assert schemas is not None
        tasks = table.newScan().useSnapshot(snapshot).planFiles().iterator()
        found = []
        while tasks.hasNext():
            task = tasks.next()
            assert not task.spec().isUnpartitioned()
            found.append(str(task.file().location()))
        return sorted(found)


@pytest.fixture
def java(judge: Jvm, quick_folder: Path) -> JavaTable:
    return JavaTable(judge, quick_folder)


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lake:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    return Lake(places_of(Section(), engine="local"))


def grown(java: JavaTable) -> list[int]:
    """Returns three snapshots, each with a schema and a spec of its own."""
    snapshots = [java.write("one")]
    for name in ("two", "three"):
        java.evolve(name, "id" if name == "two" else "two")
        snapshots.append(java.write(name))
    return snapshots


def expired(lake: Lake, java: JavaTable) -> str:
    """Returns a run that took out all but the newest snapshot and can still be undone."""
    carried = lake.expire(java.location, older_than=2**45, retain_last=1, grace="1h", blast_radius=1.0)
    return str(carried.id)  # type: ignore[union-attr]


def test_an_undo_after_javas_clean_up_brings_back_what_can_be_read(java: JavaTable, lake: Lake) -> None:
    first, second, third = grown(java)
    before = {each: java.read(each) for each in (first, second, third)}
    run = expired(lake, java)
    java.clean()
    cleaned = java.document()
    assert [each["schema-id"] for each in cleaned[SCHEMAS]] == [2]
    assert len(cleaned[SPECS]) == 1
    assert lake.undo(run).state == "undone"
    assert {each: java.read(each) for each in (first, second, third)} == before
    assert lake.check(java.location).sound
    java.write("after")  # Java goes on


def test_check_names_a_schema_and_a_spec_that_are_gone(java: JavaTable, lake: Lake) -> None:
    first, *_ = grown(java)
    name = Path(java.table.operations().current().metadataFileLocation().removeprefix("file:"))
    document = json.loads(name.read_bytes())
    document[SCHEMAS] = [each for each in document[SCHEMAS] if each["schema-id"] != 0]
    document[SPECS] = [each for each in document[SPECS] if each["spec-id"] != 0]
    name.write_text(json.dumps(document))
    (name.parent / f".{name.name}.crc").unlink(missing_ok=True)
    checked = lake.check(java.location)
    assert not checked.sound
    assert {each.problem for each in checked.presence.listed} >= {
        f"has no {what} 0, which snapshot {first} was written with" for what in ("schema", "partition spec")
    }


def test_an_undo_is_refused_where_the_id_of_a_schema_means_something_else(java: JavaTable, lake: Lake) -> None:
    """Java numbers on from the largest id that is left: after a clean-up, one that was used before."""
    java.write("one")
    java.table.updateSchema().addColumn("gone", java.jvm.iceberg("types.Types.LongType").get()).commit()
    java.write("two")
    java.table.updateSchema().deleteColumn("gone").commit()  # that is the first schema again, with its id
    java.write("three")
    run = expired(lake, java)
    java.clean()
    assert _schemas(java.document()) == {0}
    java.table.updateSchema().addColumn("other", java.jvm.iceberg("types.Types.StringType").get()).commit()
    before = java.document()
    assert _schemas(before) == {0, 1}
    with pytest.raises(RefusedForSafety, match="schema-id 1 means something else now"):
        lake.undo(run)
    assert java.document() == before


@pytest.mark.full
def test_an_undo_is_refused_where_the_columns_of_a_spec_are_gone(java: JavaTable, lake: Lake) -> None:
    java.write("one")
    java.evolve("two", "id")
    java.write("two")
    run = expired(lake, java)
    java.clean()
    java.table.updateSchema().deleteColumn("p").commit()  # nothing divides by it any more
    before = java.document()
    with pytest.raises(RefusedForSafety, match="divides by column 2"):
        lake.undo(run)
    assert java.document() == before


def _schemas(document: dict[str, Any]) -> set[int]:
    return {each["schema-id"] for each in document[SCHEMAS]}
