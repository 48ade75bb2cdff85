"""PyIceberg's own configuration opens firnline's catalogs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog

from firnline.catalogs.config import CatalogSettings, load_catalogs, open_catalog, open_commits
from firnline.errors import NoSuchTable, UnsupportedFormat, UsageError
from firnline.ports.catalogs import TableName
from firnline.stores.objects import ObjectStores


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns an empty home; nothing of the machine's own configuration shows."""
    for name in [name for name in os.environ if name.upper().startswith("PYICEBERG_")]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return home


def test_file_and_environment_are_merged(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".pyiceberg.yaml").write_text(
        "catalog:\n  Lake:\n    uri: sqlite:////x/a.db\n    s3.region: eu\n  far:\n    uri: http://h\n"
    )
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", "sqlite:////x/b.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__NEW__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__NEW__URI", "sqlite:////x/c.db")
    catalogs = load_catalogs()
    assert {name: (each.kind, each.uri) for name, each in catalogs.items()} == {
        "lake": ("sql", "sqlite:////x/b.db"),
        "far": ("rest", "http://h"),
        "new": ("sql", "sqlite:////x/c.db"),
    }
    assert catalogs["lake"].properties["s3.region"] == "eu"


def test_pyiceberg_home_wins_over_the_home_folder(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".pyiceberg.yaml").write_text("catalog:\n  a:\n    uri: sqlite:////x/a.db\n")
    (tmp_path / ".pyiceberg.yaml").write_text("catalog:\n  b:\n    uri: sqlite:////x/b.db\n")
    assert list(load_catalogs()) == ["a"]
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    assert list(load_catalogs()) == ["b"]


def test_no_configuration_is_no_catalogs() -> None:
    assert load_catalogs() == {}


@pytest.mark.parametrize("text", ["catalog: [a", "catalog: lake", "catalog:\n  lake: sqlite\n"])
def test_a_broken_file_is_a_usage_error(home: Path, text: str) -> None:
    (home / ".pyiceberg.yaml").write_text(text)
    with pytest.raises(UsageError, match="PyIceberg's configuration"):
        load_catalogs()


def test_a_relative_path_starts_from_the_current_folder_as_in_pyiceberg(tmp_path: Path) -> None:
    uri = "sqlite:///catalog.db"
    PyIcebergCatalog("lake", uri=uri, warehouse=str(tmp_path)).create_namespace("a")
    assert (tmp_path / "catalog.db").exists()
    settings = CatalogSettings("lake", "sql", uri)
    assert list(open_catalog(settings).tables()) == []
    with pytest.raises(NoSuchTable):
        open_commits(settings, ObjectStores()).commit(TableName("lake", "a", "t"), "x", "y", b"")


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({"type": "rest", "uri": "http://h"}, "rest"),
        ({"uri": "https://h"}, "rest"),
        ({"uri": "thrift://h"}, "hive"),
        ({"type": "glue"}, "glue"),
        ({"py-catalog-impl": "my.Catalog"}, "my.catalog"),
        ({"warehouse": "/x"}, "unknown"),
    ],
)
def test_other_types_are_refused_by_name(home: Path, properties: dict[str, str], kind: str) -> None:
    lines = "".join(f"    {key}: {value}\n" for key, value in properties.items())
    (home / ".pyiceberg.yaml").write_text(f"catalog:\n  far:\n{lines}")
    with pytest.raises(UnsupportedFormat) as refused:
        open_catalog(load_catalogs()["far"])
    assert kind in refused.value.message
    assert "SQLite" in refused.value.hint


def test_a_catalog_without_a_uri_says_where_to_set_it() -> None:
    with pytest.raises(UsageError) as refused:
        open_catalog(CatalogSettings("lake", "sql", ""))
    assert "PYICEBERG_CATALOG__LAKE__URI" in refused.value.hint


def test_credentials_are_not_shown() -> None:
    settings = CatalogSettings("lake", "sql", "sqlite:////x", {"s3.secret-access-key": "hunter2"})
    assert "hunter2" not in repr(settings)


def test_loading_the_configuration_needs_no_arrow() -> None:
    code = "import sys, firnline.catalogs.config as c; c.load_catalogs(); print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
