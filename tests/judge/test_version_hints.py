"""Path tables whose `version-hint.text` is behind: Iceberg's Java opens the version that the hint names and walks on
from there, so every version on that way is needed, also where no log of the table names it any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from firnline.app.places import places_of
from firnline.errors import StoreError
from firnline.lake import Lake
from firnline.model.times import DAY_MS
from firnline.policy.parse import Section
from firnline.testing.dated import Clock, Dated, dated

from .jvm import Jvm

pytestmark = pytest.mark.xdist_group("judge-0")  # shares that group's JVM

HINT = "version-hint.text"


class HintsFail(Dated):
    """A store that has no room for a hint: commits land, and nothing tells readers so."""

    def put(self, key: str, data: bytes) -> None:
        if key.endswith(HINT):
            raise StoreError(f"no room for {key}")
        super().put(key, data)


@dataclass
class PathTable:
    """A path table that Java writes and reads."""

    jvm: Jvm
    folder: Path

    def __post_init__(self) -> None:
        self.tables = self.jvm.iceberg("hadoop.HadoopTables")(self.jvm.java("org.apache.hadoop.conf.Configuration")())
        column = self.jvm.iceberg("types.Types.NestedField").required(
            1, "id", self.jvm.iceberg("types.Types.LongType").get()
        )
        schema = self.jvm.iceberg("Schema")(self.jvm.array("org.apache.iceberg.types.Types.NestedField", [column]))
        short = {"format-version": "2", "write.metadata.previous-versions-max": "2"}
        spec = self.jvm.iceberg("PartitionSpec").unpartitioned()
        self.table = self.tables.create(schema, spec, self.jvm.map(short), str(self.folder))

    def append(self, name: str) -> None:
        path = self.folder / "data" / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 100)
        made = self.jvm.iceberg("DataFiles").builder(self.table.spec()).withPath(str(path)).withFileSizeInBytes(100)
        self.table.newAppend().appendFile(made.withRecordCount(1).build()).commit()

    def set(self, name: str, value: str) -> None:
        self.table.updateProperties().set(name, value).commit()

    def hint(self, version: int) -> None:
        (self.folder / "metadata" / HINT).write_text(str(version))
        (self.folder / "metadata" / f".{HINT}.crc").unlink(missing_ok=True)

    def versions(self) -> set[str]:
        return {each.name for each in (self.folder / "metadata").glob("v*.metadata.json")}

    def read(self) -> Any:
        """Returns the current snapshot as Java finds it in a process that has not seen the table before."""
        return self.tables.load(str(self.folder)).currentSnapshot().snapshotId()


@pytest.fixture
def table(judge: Jvm, quick_folder: Path) -> PathTable:
    made = PathTable(judge, quick_folder / "t")
    for name in ("one", "two", "three", "four", "five"):
        made.append(name)
    return made


def lake_of(monkeypatch: pytest.MonkeyPatch, home: Path, store: type[Dated] = Dated) -> Lake:
    """Returns a lake ten days on, when all that was written before is old."""
    monkeypatch.setenv("PYICEBERG_HOME", str(home))
    return dated(Lake(places_of(Section(), engine="local")), Clock(10 * DAY_MS), store)


@pytest.mark.full
def test_a_search_keeps_the_versions_on_the_way_from_a_stale_hint(
    table: PathTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table.hint(2)
    newest = table.read()
    lake = lake_of(monkeypatch, tmp_path)
    _, carried = lake.orphans(str(table.folder), grace="0s", consent=lambda plan: True)
    assert carried is not None
    assert carried.state == "done"
    assert table.read() == newest
    assert "v1.metadata.json" not in table.versions()


def test_a_purge_keeps_the_versions_on_the_way_from_a_hint_that_could_not_be_written(
    table: PathTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table.set("write.metadata.delete-after-commit.enabled", "true")
    newest, hinted = table.read(), max(table.versions())
    lake = lake_of(monkeypatch, tmp_path, HintsFail)
    for kept in (4, 3, 2, 1):
        lake.expire(str(table.folder), retain_last=kept, older_than=lake.places.clock(), grace="0s")
    assert hinted in table.versions()
    assert table.read() == newest
