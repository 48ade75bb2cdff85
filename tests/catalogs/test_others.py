"""Catalogs that firnline has no client for: read and planned through PyIceberg, never committed to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog
from pyiceberg.exceptions import NoSuchTableError

from firnline.app.places import now_ms, places_of
from firnline.catalogs.others import OtherCatalog
from firnline.errors import NoSuchTable, StoreError, UnreadableMetadata, UnsupportedFormat, UsageError
from firnline.lake import Lake
from firnline.policy.parse import Section
from firnline.ports.catalogs import TableName
from firnline.ports.formats import UndoWindow

from .lakes import SCHEMA, TABLES, make_tables

SECRET = "hunter2-very-secret"


class HouseCatalog(PyIcebergCatalog):
    """Somebody's own catalog; it fails, naming its settings, where it is told to."""

    def load_table(self, identifier: Any) -> Any:
        if self.properties.get("broken"):
            raise RuntimeError(f"cannot sign in with {self.properties['house.password']}")
        if self.properties.get("blind"):
            raise NoSuchTableError("not of this format")
        return super().load_table(identifier)

    def list_namespaces(self, namespace: Any = ()) -> Any:
        if namespace and (failure := self.properties.get("nested")):
            raise {"none": NotImplementedError, "failing": TimeoutError}[failure]("nested namespaces")
        return super().list_namespaces(namespace)


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
    assert catalog.locate(TableName("house", ("eu", "west"), "events")) == theirs
    assert catalog.undo is UndoWindow.NONE


def test_an_unknown_table_has_near_names(catalog: OtherCatalog) -> None:
    with pytest.raises(NoSuchTable) as missing:
        catalog.locate(TableName("house", ("sales",), "evnts"))
    assert "house.sales.events" in missing.value.hint


def test_a_table_that_is_listed_and_not_found_was_not_dropped(properties: dict[str, str]) -> None:
    blind = OtherCatalog("house", {**properties, "blind": "1"})
    with pytest.raises(UnreadableMetadata, match=r"lists house\.sales\.events"):
        blind.locate(TableName("house", ("sales",), "events"))


def test_a_listing_that_fails_half_way_hides_no_tables(properties: dict[str, str]) -> None:
    with pytest.raises(StoreError, match="TimeoutError"):
        list(OtherCatalog("house", {**properties, "nested": "failing"}).tables())
    single = OtherCatalog("house", {**properties, "nested": "none"})
    assert "house.sales.events" in [str(each) for each in single.tables()]


def test_a_name_with_a_dot_is_one_name(catalog: OtherCatalog, properties: dict[str, str]) -> None:
    HouseCatalog("house", **properties).create_table(("sales", "a.b"), SCHEMA)
    (dotted,) = (each for each in catalog.tables() if each.name == "a.b")
    assert str(dotted) == 'house.sales."a.b"'
    assert catalog.locate(dotted)


def test_what_its_library_raises_is_explained_without_its_secrets(properties: dict[str, str]) -> None:
    broken = OtherCatalog("house", {**properties, "broken": "1", "house.password": SECRET})
    with pytest.raises(StoreError, match=r"RuntimeError: cannot sign in with \*\*\*") as failed:
        broken.locate(TableName("house", ("sales",), "events"))
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
    lake = Lake(places_of(Section(), engine="local"))
    asked: dict[str, Any] = {"older_than": now_ms() + 1, "retain_last": 1, "blast_radius": 1.0}
    assert len(lake.plan("house.eu.west.events", **asked).plan.expire) == 1
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UnsupportedFormat, match="no compare-and-swap") as refused:
        lake.expire("house.eu.west.events", grace="0s", **asked)
    assert "plans work" in refused.value.hint
    assert sorted(tmp_path.rglob("*")) == before
