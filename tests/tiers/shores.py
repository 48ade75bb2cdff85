"""A live and a cold place, each with a SQLite catalog that firnline, PyIceberg and Spark are all configured for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from firnline.app.places import now_ms
from tests.judge.firnline_side import said
from tests.tiers.java_spark import JavaSpark

NAMESPACE = "db"


@dataclass(frozen=True)
class Shore:
    """`live`, `cold` and `deep` are roots of their own; `name` tells its catalogs from those of other tests."""

    name: str
    folder: Path
    live: str
    cold: str
    s3: Mapping[str, str] = field(default_factory=dict)
    deep: str = ""

    @property
    def lake_name(self) -> str:
        return f"lake_{self.name}"

    @property
    def cold_name(self) -> str:
        return f"cold_{self.name}"

    @property
    def deep_name(self) -> str:
        return f"deep_{self.name}"

    def live_table(self, table: str = "t") -> str:
        return f"{self.lake_name}.{NAMESPACE}.{table}"

    def cold_table(self, table: str = "t") -> str:
        return f"{self.cold_name}.{NAMESPACE}.{table}"

    def configure(self, monkeypatch: pytest.MonkeyPatch, **tier: str) -> None:
        """Writes both catalogs and the policy to files of the folder; `tier` is added to the tier's settings."""
        names = (self.lake_name, self.cold_name, *((self.deep_name,) if self.deep else ()))
        catalogs = {name: self.settings_of(name) for name in names}
        (self.folder / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": catalogs}))
        policy: dict[str, Any] = {
            "archive": self.cold_name,
            "tiers": {self.cold_name: {"root": self.cold, **tier}},
            "catalogs": {self.cold_name: {"archive": "off"}},
        }
        if self.deep:
            policy["tiers"][self.deep_name] = {"root": self.deep, "bundle": "1MiB"}
            policy["catalogs"] = {
                self.cold_name: {"archive": self.deep_name, "keep": {"last": 1}},
                self.deep_name: {"archive": "off"},
            }
        (self.folder / "firnline.yaml").write_text(yaml.safe_dump(policy))
        monkeypatch.setenv("PYICEBERG_HOME", str(self.folder))
        monkeypatch.setenv("FIRNLINE_CACHE", str(self.folder / "cache"))

    def add_to(self, spark: JavaSpark) -> None:
        """Makes both catalogs known to Spark, and the namespace of the live one."""
        for name in (self.lake_name, self.cold_name):
            theirs = {"type": "jdbc", "uri": f"jdbc:sqlite:{self._database(name)}", "jdbc.schema-version": "V1"}
            if self.s3:
                theirs |= {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "client.region": self.s3["s3.region"]}
            spark.add_catalog(name, {**theirs, "warehouse": self._root(name), **self.s3})
        spark.sql(f"CREATE NAMESPACE {self.lake_name}.{NAMESPACE}")

    def pyiceberg(self, table: str) -> Table:
        """Returns a table as PyIceberg reads it; `table` with its catalog before it."""
        name, _, rest = table.partition(".")
        catalog = SqlCatalog(name, **self.settings_of(name))
        try:
            return catalog.load_table(rest)
        finally:
            catalog.close()

    def firnline(self, *command: str) -> Any:
        """Returns what a command says as JSON. Raises AssertionError where it fails."""
        return json.loads(said([*command, "--config", str(self.folder / "firnline.yaml"), "--json"]))

    def expire(self, engine: str, *more: str, table: str = "t") -> Any:
        """Expires all but the newest snapshot of every branch, and purges at once."""
        cut = [
            "--older-than",
            str(now_ms() + 1),
            "--retain-last",
            "1",
            "--grace",
            "0s",
            "--blast-radius",
            "100%",
            "--yes",
        ]
        return self.firnline("expire", self.live_table(table), *cut, "--engine", engine, *more)

    def expire_cold(self) -> Any:
        """Hands all but the newest snapshot of the cold table to the deep tier, and purges at once."""
        return self.firnline("expire", self.cold_table(), "--grace", "0s", "--blast-radius", "100%", "--yes")

    def wake(self, snapshot: int) -> Any:
        """Brings a snapshot back from the deep tier to the cold one."""
        formal = ["--case", "CASE-1", "--by", "A. Person"]
        return self.firnline("restore", self.live_table(), str(snapshot), "--to", self.cold_name, *formal)

    def settings_of(self, name: str) -> dict[str, str]:
        uri = f"sqlite:///{self._database(name)}"
        return {"type": "sql", "uri": uri, "warehouse": self._root(name), **self.s3}

    def _database(self, name: str) -> Path:
        return self.folder / f"{name}.db"

    def _root(self, name: str) -> str:
        return {self.lake_name: self.live, self.cold_name: self.cold}.get(name, self.deep)


def on_files(name: str, folder: Path) -> Shore:
    places = (f"file://{folder}/{each}" for each in ("warehouse", "colder"))
    return Shore(name, folder, *places, deep=f"file://{folder}/deeper")
