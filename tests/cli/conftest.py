from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from firnline.testing.manifests import AvroLayout
from firnline.testing.tables import QuickFiles, SmallTable

PYICEBERG = "catalog:\n  lake:\n    type: sql\n    uri: sqlite:///{folder}/catalog.db\n    warehouse: file://{folder}\n"


@dataclass(frozen=True)
class SmallLake:
    """A folder with a catalog and one table of eight days, `lake.ns.events`, that a test may spoil."""

    folder: Path
    events: SmallTable

    def register(self, name: str, metadata_location: str) -> None:
        """Makes the catalog point at a metadata document, whatever is in it."""
        row = ("lake", "ns", name, metadata_location, "TABLE")
        columns = "catalog_name, table_namespace, table_name, metadata_location, iceberg_type"
        with sqlite3.connect(self.folder / "catalog.db") as database:
            database.execute(f"INSERT OR REPLACE INTO iceberg_tables ({columns}) VALUES (?, ?, ?, ?, ?)", row)
        database.close()

    def publish(self, edit: Callable[[dict[str, object]], None] | None = None) -> str:
        location = self.events.publish(edit=edit)
        self.register("events", location)
        return location

    def another(self, name: str) -> None:
        """Makes another table in the namespace, of three snapshots."""
        other = SmallTable(QuickFiles(), f"file://{self.folder}/ns/{name}")
        for _ in range(3):
            other.append(1)
        self.register(name, other.publish())

    def policy(self, text: str) -> None:
        (self.folder / "firnline.yaml").write_text(text)

    def path(self, key: str) -> Path:
        return Path(key.removeprefix("file://"))

    def everything(self) -> dict[str, tuple[str, int]]:
        """Returns content and time of every file, and the time of every folder."""
        paths = [self.folder, *self.folder.rglob("*")]
        return {
            str(path): (sha256(path.read_bytes()).hexdigest() if path.is_file() else "", path.stat().st_mtime_ns)
            for path in paths
        }


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    folder = tmp_path / "lake"
    folder.mkdir()
    (folder / ".pyiceberg.yaml").write_text(PYICEBERG.format(folder=folder))
    for name in ("FIRNLINE_CONFIG", "FIRNLINE_ENGINE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYICEBERG_HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "no-config"))
    monkeypatch.chdir(folder)
    SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}").close()
    made = SmallLake(folder, eight_days(SmallTable(QuickFiles(), f"file://{folder}/ns/events", AvroLayout(2))))
    made.publish()
    return made


def eight_days(table: SmallTable) -> SmallTable:
    """Appends, a delete of rows, an overwrite, and a tag on the second day."""
    table.append(2)
    tagged = table.append(1)
    table.append(1, outside=True)
    table.delete_rows(table.live()[:1])
    table.overwrite(table.live()[:2])
    table.append(1)
    table.append(1)
    table.append(1)
    table.tag("release", tagged)
    return table


@pytest.fixture
def neglected(lake: SmallLake) -> SmallTable:
    """A table that was written anew forty times, and never expired."""
    table = SmallTable(QuickFiles(), f"file://{lake.folder}/ns/neglected")
    table.append(2)
    for _ in range(40):
        table.overwrite(table.live(), 2)
    lake.register("neglected", table.publish())
    return table
