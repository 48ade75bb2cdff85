"""A slip in a statement is told before Spark is loaded, however many statements there are before it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from firnline.app.catalogs import Catalogs
from firnline.cli.main import run
from firnline.errors import NoSuchTable, UsageError
from firnline.plans.pages import Grid, Line, Page
from firnline.sql import METADATA, ROWS, TOLD_OF_LAKE
from firnline.sql.asking import _RELATIONS
from firnline.sql.lake_wide import OF_LAKE
from firnline.sql.text.namespaces import tables_shown
from firnline.sql.text.statements import parsed, understood

FIRNLINE = Path(sys.executable).parent / "firnline"


def test_names_are_known_without_spark_and_are_those_that_spark_reads() -> None:
    assert {*METADATA, ROWS} == set(_RELATIONS)
    assert set(TOLD_OF_LAKE) == set(OF_LAKE)


@pytest.mark.parametrize(
    ("statement", "code", "said"),
    [
        ("SELECT * FROM ns.nothing", 10, "no such table: ns.nothing"),
        ("SELECT * FROM elsewhere.ns.t.files", 10, "no such table: elsewhere.ns.t.files"),
        ("SELECT 1; SELECT * FROM ns.nothing", 10, "no such table: ns.nothing"),
        ("DESCRIBE ns.nothing", 10, "no such table: ns.nothing"),
        ("SELECT 1; SHOW TABLES IN nope", 10, "no catalog is called nope, and no namespace with a table"),
        ("SELECT 1; SELEC 2", 2, "cannot be understood"),
        ("DROP TABLE ns.t", 2, "DROP is not run here"),
    ],
)
@pytest.mark.sampled(1)
def test_no_java_is_needed_to_tell_a_slip(tmp_path: Path, statement: str, code: int, said: str) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(
        f"catalog:\n  lake:\n    type: sql\n    uri: sqlite:///{tmp_path}/catalog.db\n    init_catalog_tables: true\n"
    )
    from pyiceberg.catalog.sql import SqlCatalog

    SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db").close()
    environment = {**os.environ, "JAVA_HOME": str(tmp_path), "PYICEBERG_HOME": str(tmp_path), "PATH": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", FIRNLINE, "sql", statement],
        capture_output=True, text=True, env=environment, cwd=tmp_path, check=False,
    )  # fmt: skip
    lines = ended.stderr.splitlines()
    told = [line for line in lines if not line.startswith("import time:")]
    assert (ended.returncode, said in told[0]) == (code, True), told
    assert not [line for line in lines if line.endswith(" pyspark")]


@pytest.mark.parametrize("table", ["runs", "snapshots"])
@pytest.mark.parametrize(
    "version", ["VERSION AS OF 'main'", "TIMESTAMP AS OF '2026-01-01'", "FOR SYSTEM_VERSION AS OF 7"]
)
def test_what_is_told_of_the_whole_lake_has_no_versions(table: str, version: str) -> None:
    """The version was left out, and the answer was of now."""
    with pytest.raises(UsageError, match="no versions"):
        understood(f"SELECT * FROM firnline.{table} {version}", lambda name: None)


@pytest.mark.parametrize("after", ["main", "", "-", "main WHERE 1 = 1"])
def test_a_version_without_quotes_is_told(after: str) -> None:
    with pytest.raises(UsageError, match="in quotes"):
        parsed(f"SELECT * FROM ns.t VERSION AS OF {after}")


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["", "rows.csv"], 2, "there is no statement"),
        ([" ;\n"], 2, "there is no statement"),
        (["/* only a word */; -- and another"], 2, "there is no statement"),
        (["SELECT 1", "there.csv", "--output", "csv"], 2, "there.csv is there already"),
        (["SELECT 1", "there.csv", "--output", "parquet"], 2, "there.csv is there already"),
        (["SELECT 1", "none/rows.csv", "--output", "csv"], 2, "no such folder: none"),
        (["SELECT 1", "none/rows", "--output", "parquet"], 2, "no such folder: none"),
        (["SELECT 1", "there.csv/rows", "--output", "json"], 2, "no such folder: there.csv"),
    ],
)
def test_what_cannot_be_written_is_told_before_anything_is_loaded(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    told: str,
) -> None:
    def open_lake(config: str | None) -> None:
        raise AssertionError("the lake was opened")

    monkeypatch.setattr("firnline.lake.open_lake", open_lake)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.csv").write_text("mine")
    assert run(["sql", *arguments]) == code
    assert told in capsys.readouterr().err
    assert (tmp_path / "there.csv").read_text() == "mine"


def test_a_table_of_rows_is_as_wide_as_the_terminal_and_whole_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Lake:
        def sql(self, text: str) -> list[Any]:
            return [None]

    wide = Page((Grid((("word " * 40, "1"),), ("said", "n")), Line("1 row")))
    monkeypatch.setattr("firnline.lake.open_lake", lambda config: Lake())
    monkeypatch.setattr("firnline.sql.results.page_of", lambda frame: wide)
    assert run(["sql", "SELECT 1"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) > 180
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(["sql", "SELECT 1"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    ("manner", "is_heard"), [pytest.param([], False), pytest.param(["-v"], True, marks=pytest.mark.full)]
)
def test_what_a_jvm_says_by_itself_is_shown_to_who_asks_for_more(
    tmp_path: Path, manner: list[str], is_heard: bool
) -> None:
    ended = subprocess.run(
        [FIRNLINE, *manner, "sql", "SELECT 7 AS n", "--output", "csv"],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout.split()) == (0, ["n", "7"])
    assert ("incubator" in ended.stderr, "NativeCodeLoader" in ended.stderr) == (is_heard, is_heard), ended.stderr
    assert is_heard or not ended.stderr


def test_a_jvm_that_does_not_start_says_why(tmp_path: Path) -> None:
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    ended = subprocess.run(
        [FIRNLINE, "sql", "SELECT 7 AS n"], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert ended.returncode == 2
    assert f"{tmp_path}/bin/java" in ended.stderr
    assert "error: Spark cannot be started" in ended.stderr


GONE = {"type": "sql", "uri": "sqlite:////nowhere/away.db"}


@pytest.fixture
def catalogs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogs:
    """Two catalogs with a namespace each, and one that is away."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.schema import Schema

    said: dict[str, object] = {"away": GONE}
    for name, namespace in (("lake", "sales"), ("other", "orders")):
        uri = f"sqlite:///{tmp_path}/{name}.db"
        made = SqlCatalog(name, uri=uri, warehouse=f"file://{tmp_path}")
        made.create_namespace(namespace)
        made.create_table((namespace, "t"), Schema())
        made.close()
        said[name] = {"type": "sql", "uri": uri}
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    (tmp_path / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": said}))
    return Catalogs()


@pytest.mark.parametrize(
    ("namespace", "begins", "named"),
    [
        ("lake.sale", "did you mean ", {"lake.sales"}),
        ("lake.SALES", "did you mean ", {"lake.sales"}),
        ("other.sales", "did you mean ", {"lake.sales"}),
        ("other.nothing_like_it", "there are: ", {"lake", "other", "away", "lake.sales", "other.orders"}),
    ],
)
def test_a_namespace_that_is_not_there_is_told_with_what_is(
    catalogs: Catalogs, namespace: str, begins: str, named: set[str]
) -> None:
    with pytest.raises(NoSuchTable) as told:
        understood(f"SHOW TABLES IN {namespace} LIKE '*'", lambda name: None, partial(tables_shown, catalogs))
    assert (told.value.exit_code, told.value.message.split(",")[0]) == (10, f"no catalog is called {namespace}")
    assert told.value.hint.startswith(begins)
    assert named <= set(re.findall(r"[\w.]+", told.value.hint))


@pytest.mark.parametrize(("namespace", "found"), [("sales", 1), ("lake", 1), ("lake.sales", 1), (None, 2)])
def test_a_namespace_that_is_there_is_shown(catalogs: Catalogs, namespace: str | None, found: int) -> None:
    shown, unread = tables_shown(catalogs, namespace)
    assert (len(shown), list(unread)) == (found, ["away"])


@pytest.mark.parametrize("namespace", ["away", "away.sales", "sale"])
def test_what_a_catalog_that_is_away_may_have_is_not_denied(catalogs: Catalogs, namespace: str) -> None:
    shown, unread = tables_shown(catalogs, namespace)
    assert (shown, list(unread)) == ([], ["away"])
