"""A lake of real tables with a cold tier: both catalogs are SQLite files, everything lies in one folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from firnline.catalogs import config, sql
from tests.neighbours.lakes import COLUMN, RealLake, real_lake

POLICY = """
archive: cold
tiers:
  cold:
    root: {root}
catalogs:
  cold:
    archive: off
"""


@dataclass
class TieredLake(RealLake):
    """A lake whose policy hands what expires to the tier `cold`."""

    @property
    def cold_root(self) -> Path:
        return self.folder / "colder"

    @property
    def cold(self) -> SqlCatalog:
        """The tier's catalog as PyIceberg has it."""
        return SqlCatalog("cold", uri=f"sqlite:///{self.folder}/cold.db", warehouse=f"file://{self.cold_root}")

    def cold_table(self, name: str) -> Table:
        return self.cold.load_table(f"db.{name}")

    def rows_by_snapshot(self, name: str) -> dict[int, list[int]]:
        return rows_of(self.table(name))

    def cold_rows(self, name: str) -> dict[int, list[int]]:
        return rows_of(self.cold_table(name))


def rows_of(table: Table) -> dict[int, list[int]]:
    """Returns the rows of every snapshot, as PyIceberg reads them."""
    return {
        each.snapshot_id: sorted(table.scan(snapshot_id=each.snapshot_id).to_arrow().column(COLUMN).to_pylist())
        for each in table.snapshots()
    }


def forget_catalogs() -> None:
    """Lets go of what this process knows of catalogs, as a new one does: another test may have had the same path."""
    for opened in config._opened.values():
        if isinstance(opened, sql.SqlCatalog):  # it holds its file open; those of REST servers, of other tests, do not
            opened.close()
    config._opened.clear()


@contextmanager
def tiered_lake(folder: Path, monkeypatch: pytest.MonkeyPatch, more: str = "") -> Iterator[TieredLake]:
    """Makes an empty lake with a tier; `more` is added to what firnline.yaml says of it."""
    forget_catalogs()
    with real_lake(folder, monkeypatch) as lake:
        settings = yaml.safe_load((folder / ".pyiceberg.yaml").read_text())
        cold = {"type": "sql", "uri": f"sqlite:///{folder}/cold.db", "warehouse": f"file://{folder}/colder"}
        settings["catalog"]["cold"] = cold
        (folder / ".pyiceberg.yaml").write_text(yaml.safe_dump(settings))
        tiered = TieredLake(folder, lake.catalog)
        tiered.policy = POLICY.format(root=f"file://{folder}/colder" + more)
        yield tiered
