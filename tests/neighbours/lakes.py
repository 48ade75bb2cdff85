"""A lake of real tables in one SQLite catalog, written by PyIceberg, and firnline on it as its users have it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from firnline.app.places import now_ms
from firnline.lake import Lake, open_lake

COLUMN = "x"


@dataclass
class RealLake:
    """One catalog named `lake` with the namespace `db`. `policy` is what firnline.yaml says."""

    folder: Path
    catalog: SqlCatalog
    policy: str = ""

    def create(self, name: str, **properties: str) -> Table:
        schema = pa.schema([(COLUMN, pa.int64())])
        return self.catalog.create_table(f"db.{name}", schema, properties=properties)

    def table(self, name: str) -> Table:
        return self.catalog.load_table(f"db.{name}")

    def append(self, name: str, *numbers: int) -> None:
        self.table(name).append(rows(*numbers))

    def overwrite(self, name: str, *numbers: int) -> None:
        self.table(name).overwrite(rows(*numbers))

    def branch(self, name: str, branch: str) -> None:
        """Makes a branch at the current snapshot."""
        table = self.table(name)
        head = table.current_snapshot()
        assert head is not None, "a branch needs a snapshot"
        table.manage_snapshots().create_branch(head.snapshot_id, branch).commit()

    def read(self, name: str) -> list[int]:
        """Returns the rows of the current snapshot as PyIceberg reads them: raises where a file of it is gone."""
        return sorted(self.table(name).scan().to_arrow().column(COLUMN).to_pylist())

    def read_all(self, name: str) -> list[list[int]]:
        """Returns the rows of every snapshot that the table has."""
        table = self.table(name)
        return [
            sorted(table.scan(snapshot_id=each.snapshot_id).to_arrow().column(COLUMN).to_pylist())
            for each in table.snapshots()
        ]

    def data_files(self, name: str) -> list[str]:
        return [task.file.file_path for task in self.table(name).scan().plan_files()]

    def clone(self, name: str, new: str) -> None:
        """Registers a copy of a table's metadata under a uuid of its own: it shares every file of the original."""
        source = self.table(name).metadata_location.removeprefix("file://")
        document = json.loads(Path(source).read_text())
        folder = self.folder / "warehouse" / "db" / new
        document |= {"table-uuid": str(uuid4()), "location": f"file://{folder}", "metadata-log": []}
        (folder / "metadata").mkdir(parents=True)
        copy = folder / "metadata" / f"00000-{uuid4()}.metadata.json"
        copy.write_text(json.dumps(document))
        self.catalog.register_table(f"db.{new}", f"file://{copy}")

    def firnline(self, engine: str = "local") -> Lake:
        """Returns firnline as a new process would have it, with the configuration as it is now."""
        (self.folder / "firnline.yaml").write_text(self.policy)
        return open_lake(str(self.folder / "firnline.yaml"), engine=engine)

    def expire(self, name: str, grace: str = "0s", **options: Any) -> Any:
        """Expires all but the current snapshot."""
        return self.firnline().expire(f"lake.db.{name}", older_than=now_ms(), retain_last=1, grace=grace, **options)


def rows(*numbers: int) -> pa.Table:
    return pa.table({COLUMN: pa.array(numbers, pa.int64())})


@contextmanager
def real_lake(folder: Path, monkeypatch: pytest.MonkeyPatch, cache: str = "") -> Iterator[RealLake]:
    """Makes an empty lake in the folder, with a cache of its own: nothing that another test walked is known here."""
    settings = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
    (folder / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": {"lake": settings}}))
    monkeypatch.setenv("PYICEBERG_HOME", str(folder))
    monkeypatch.setenv("FIRNLINE_CACHE", cache or str(folder / "cache"))
    catalog = SqlCatalog("lake", **settings)
    catalog.create_namespace("db")
    try:
        yield RealLake(folder, catalog)
    finally:
        catalog.close()
