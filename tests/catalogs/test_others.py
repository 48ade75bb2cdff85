"""Catalogs that firnline has no client for: read and planned through PyIceberg, never committed to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog

from firnline.app import Lake, now_ms
from firnline.catalogs.others import OtherCatalog
from firnline.errors import NoSuchTable, StoreError, UnsupportedFormat, UsageError
from firnline.policy.config import Section
from firnline.ports.catalogs import TableName
from firnline.ports.formats import UndoWindow

from .lakes import TABLES, make_tables

SECRET = "hunter2-very-secret"


class HouseCatalog(PyIcebergCatalog):
    """Somebody's own catalog; it fails, naming its settings, where it is told to."""

    def load_table(self, identifier: Any) -> Any:
        if self.properties.get("broken"):
            raise RuntimeError(f"cannot sign in with {self.properties['house.password']}")
        return super().load_table(identifier)


@pytest.fixture
def properties(tmp_path: Path) -> dict[str, str]:
    uri, warehouse = f"sqlite:///{tmp_path}/house.db", f"file://{tmp_path}/warehouse"
    make_tables(HouseCatalog("house", uri=uri, warehouse=warehouse))
    return {"py-catalog-impl": f"{__name__}.HouseCatalog", "uri": uri, "warehouse": warehouse}


@pytest.fixture
def catalog(properties: dict[str, str]) -> OtherCatalog:
    return OtherCatalog("house", properties)


def test_it_lists_and_locates(catalog: OtherCatalog, properties: dict[str, str]) -> None:
    assert [str(table) for table in catalog.tables()] == sorted(f"house.{name}" for name in TABLES)
    theirs = HouseCatalog("house", **properties).load_table("eu.west.events").metadata_location
    assert catalog.locate(TableName("house", "eu.west", "events")) == theirs
    assert catalog.undo is UndoWindow.NONE


def test_an_unknown_table_has_near_names(catalog: OtherCatalog) -> None:
    with pytest.raises(NoSuchTable) as missing:
        catalog.locate(TableName("house", "sales", "evnts"))
    assert "house.sales.events" in missing.value.hint


def test_what_its_library_raises_is_explained_without_its_secrets(properties: dict[str, str]) -> None:
    broken = OtherCatalog("house", {**properties, "broken": "1", "house.password": SECRET})
    with pytest.raises(StoreError, match=r"RuntimeError: cannot sign in with \*\*\*") as failed:
        broken.locate(TableName("house", "sales", "events"))
    assert SECRET not in failed.value.message + repr(broken)


def test_a_catalog_that_cannot_be_loaded_says_why() -> None:
    with pytest.raises(UsageError, match="PyIceberg cannot load catalog house"):
        list(OtherCatalog("house", {"py-catalog-impl": "no.such.Catalog"}).tables())


def test_plans_work_and_a_run_is_refused_before_anything_is_written(
    properties: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    settings = "".join(f"    {name}: {value}\n" for name, value in properties.items())
    (tmp_path / ".pyiceberg.yaml").write_text(f"catalog:\n  house:\n{settings}")
    lake = Lake(Section(), engine="local")
    asked: dict[str, Any] = {"older_than": now_ms() + 1, "retain_last": 1, "blast_radius": 1.0}
    assert len(lake.plan("house.eu.west.events", **asked).plan.expire) == 1
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UnsupportedFormat, match="no compare-and-swap") as refused:
        lake.expire("house.eu.west.events", grace="0s", **asked)
    assert "plans work" in refused.value.hint
    assert sorted(tmp_path.rglob("*")) == before
