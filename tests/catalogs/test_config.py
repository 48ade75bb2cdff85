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
from firnline.ports.catalogs import Step, TableName, Version
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("catalog: {lake: {type: rest}}\n", "line 1 has braces or brackets, which PyIceberg does not take"),
        ("catalog:\n  lake:\n    uri: a\n    uri: b\n", "line 4 has a key for the second time"),
        ("catalog:\n  lake: &all\n    uri: a\n", "line 2 has an anchor, which PyIceberg does not take"),
        ("catalog:\n  lake:\n    uri: !!str a\n", "line 3 has a tag, which PyIceberg does not take"),
        ("catalog:\n  lake:\n    uri: a\n  far:\n      uri: b\n", "is indented otherwise than the mapping before it"),
    ],
)
def test_what_is_sound_yaml_and_not_taken_by_pyiceberg_is_named(home: Path, text: str, said: str) -> None:
    """Every other reader of YAML takes it: a user who is told only the line looks for a slip that is not there."""
    (home / ".pyiceberg.yaml").write_text(text)
    with pytest.raises(UsageError, match=said):
        load_catalogs()


def test_a_relative_path_starts_from_the_current_folder_as_in_pyiceberg(tmp_path: Path) -> None:
    uri = "sqlite:///catalog.db"
    PyIcebergCatalog("lake", uri=uri, warehouse=str(tmp_path)).create_namespace("a")
    assert (tmp_path / "catalog.db").exists()
    settings = CatalogSettings("lake", "sql", uri)
    assert list(open_catalog(settings).tables()) == []
    commits = open_commits(settings, ObjectStores())
    attempt = commits.prepare(TableName("lake", ("a",), "t"), Step(Version("x", {}), {}, b"", "y"))
    with pytest.raises(NoSuchTable):
        commits.commit(attempt)


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({"type": "rest", "uri": "http://h"}, "rest"),
        ({"uri": "https://h"}, "rest"),
        ({"uri": "thrift://h"}, "hive"),
        ({"type": "glue"}, "glue"),
        ({"py-catalog-impl": "my.Catalog"}, "other"),
        ({"warehouse": "/x"}, ""),
        ({"uri": "postgresql+psycopg2://h/d"}, "sql"),
    ],
)
def test_the_kind_is_named_or_told_by_the_uri(home: Path, properties: dict[str, str], kind: str) -> None:
    lines = "".join(f"    {key}: {value}\n" for key, value in properties.items())
    (home / ".pyiceberg.yaml").write_text(f"catalog:\n  far:\n{lines}")
    assert load_catalogs()["far"].kind == kind


def test_nested_settings_are_known_by_their_full_names(home: Path) -> None:
    ssl = "    ssl:\n      cabundle: /ca.pem\n      client:\n        cert: /c.pem\n"
    (home / ".pyiceberg.yaml").write_text(f"catalog:\n  far:\n    uri: https://h\n{ssl}")
    assert load_catalogs()["far"].properties == {
        "uri": "https://h", "ssl.cabundle": "/ca.pem", "ssl.client.cert": "/c.pem"
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["glue", "hive", "dynamodb", "bigquery", "in-memory", "other"])
def test_nothing_is_committed_where_no_compare_and_swap_exists(kind: str) -> None:
    with pytest.raises(UnsupportedFormat, match="no compare-and-swap") as refused:
        open_commits(CatalogSettings("far", kind, ""), ObjectStores())
    assert kind in refused.value.message
    assert "SQLite" in refused.value.hint


def test_a_catalog_without_a_uri_says_where_to_set_it() -> None:
    with pytest.raises(UsageError) as refused:
        open_catalog(CatalogSettings("lake", "sql", ""))
    assert "PYICEBERG_CATALOG__LAKE__URI" in refused.value.hint


def test_a_password_in_the_address_is_not_shown() -> None:
    assert "hunter2" not in repr(CatalogSettings("lake", "sql", "postgresql://me:hunter2@db/lake"))


def test_credentials_are_not_shown() -> None:
    settings = CatalogSettings("lake", "sql", "sqlite:////x", {"s3.secret-access-key": "hunter2"})
    assert "hunter2" not in repr(settings)


def test_loading_the_configuration_needs_no_arrow() -> None:
    code = "import sys, firnline.catalogs.config as c; c.load_catalogs(); print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
