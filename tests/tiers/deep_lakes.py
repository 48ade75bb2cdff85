"""A lake of real tables with two tiers: what leaves the live table goes to `cold`, and from there to `deep`, packed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog

from firnline.ops.tiers.waking import Inquiry
from tests.tiers.lakes import TieredLake, rows_of, tiered_lake

DEEP = """
archive: cold
tiers:
  cold:
    root: {cold}
  deep:
    root: {deep}
    bundle: 1MiB
catalogs:
  cold:
    archive: deep
    keep: {{last: 1}}
  deep:
    archive: off
"""
FORMAL = Inquiry("INCIDENT-7", "A. Person")


class DeepLake(TieredLake):
    """A lake with a deep tier behind the cold one."""

    @property
    def deep_root(self) -> Path:
        return self.folder / "deeper"

    @property
    def deep(self) -> SqlCatalog:
        return SqlCatalog("deep", uri=f"sqlite:///{self.folder}/deep.db", warehouse=f"file://{self.deep_root}")

    def bundles(self) -> list[Path]:
        return sorted(self.deep_root.rglob("*.tar"))

    def deep_ids(self, name: str) -> set[int]:
        return {each.snapshot_id for each in self.deep.load_table(f"db.{name}").snapshots()}

    def deep_rows(self, name: str) -> dict[int, list[int]]:
        """Returns the rows of what the deep tier has, as PyIceberg reads them while all is `unpacked`."""
        return rows_of(self.deep.load_table(f"db.{name}"))

    @contextmanager
    def unpacked(self) -> Iterator[None]:
        """Lays every file of a whole bundle to its place for the time of the block: by the index alone, as anybody
        can.
        """
        laid: list[Path] = []
        for segment in self.deep_root.glob("_bundles/*/index/*.parquet"):
            for row in pq.read_table(segment).to_pylist():
                place, bundle = (Path(row[name].removeprefix("file://")) for name in ("place", "bundle"))
                data = bundle.read_bytes()[row["offset"] :][: row["size"]] if bundle.exists() else b""
                if row["checksum"] == f"sha256:{sha256(data).hexdigest()}":
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(data)
                    laid.append(place)
        yield
        for place in laid:
            place.unlink(missing_ok=True)

    def expire_cold(self, name: str, grace: str = "0s", **options: Any) -> Any:
        """Hands all but the newest snapshot of the cold table to the deep tier."""
        return self.firnline().expire(f"cold.db.{name}", grace=grace, blast_radius=1.0, **options)


@contextmanager
def deep_lake(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeepLake]:
    with tiered_lake(folder, monkeypatch) as tiered:
        settings = yaml.safe_load((folder / ".pyiceberg.yaml").read_text())
        deep = {"type": "sql", "uri": f"sqlite:///{folder}/deep.db", "warehouse": f"file://{folder}/deeper"}
        settings["catalog"]["deep"] = deep
        (folder / ".pyiceberg.yaml").write_text(yaml.safe_dump(settings))
        made = DeepLake(folder, tiered.catalog)
        made.policy = DEEP.format(cold=f"file://{folder}/colder", deep=f"file://{folder}/deeper")
        yield made
