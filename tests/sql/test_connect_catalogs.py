"""Over Spark Connect a query goes by the catalogs of the one who asks: the server has other files, or none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from firnline.app.places import open_places
from firnline.sql.home import at_home, carried_options
from tests.engines.clusters import connect_server, surroundings

FIRNLINE = Path(sys.executable).parent / "firnline"


def lake_of(folder: Path, person: str, catalog_name: str, row: int) -> Path:
    """Returns a folder with the configuration of a person, and a table of one row in the catalog that it names."""
    home = folder / f"home of {person}"
    home.mkdir()
    place = folder / catalog_name
    place.mkdir()
    settings = {"type": "sql", "uri": f"sqlite:///{place}/catalog.db", "warehouse": f"file://{place}/lake"}
    lines = "".join(f"    {name}: {value}\n" for name, value in settings.items())
    (home / ".pyiceberg.yaml").write_text(f"catalog:\n  {catalog_name}:\n{lines}")
    catalog = SqlCatalog(catalog_name, **settings)
    catalog.create_namespace("ns")
    rows = pa.table({"id": pa.array([row], pa.int64())})
    catalog.create_table("ns.t", rows.schema).append(rows)
    catalog.close()
    return home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration of a person, who stands in its folder."""
    home = lake_of(tmp_path, "a person", "mine", 1)
    (home / "firnline.yaml").write_text("grace: 7h\n")
    monkeypatch.setenv("PYICEBERG_HOME", str(home))
    monkeypatch.delenv("FIRNLINE_CONFIG", raising=False)
    monkeypatch.chdir(home)
    return home


def test_what_was_sent_counts_and_not_what_lies_there(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = carried_options(None)["home"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "firnline.yaml").write_text("grace: 1h\n")
    monkeypatch.delenv("PYICEBERG_HOME")
    monkeypatch.setenv("HOME", str(elsewhere))
    monkeypatch.chdir(elsewhere)
    with at_home(sent, None) as config:
        places = open_places(config)
        assert [str(each) for each in places.catalogs.tables()] == ["mine.ns.t"]
        assert places.config.settings["grace"].value == 7 * 3_600_000
        assert config is not None
        assert Path(config).parent.stat().st_mode & 0o077 == 0
    assert not Path(config).exists()
    assert "PYICEBERG_HOME" not in os.environ


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_server_that_knows_no_catalog_reads_those_of_the_client(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    around = {name: value for name, value in surroundings(tmp_path).items() if not name.startswith("PYICEBERG_")}
    here = {name: value for name, value in os.environ.items() if not name.startswith("PYICEBERG_")}
    server = tmp_path / "server"
    server.mkdir()
    monkeypatch.chdir(server)  # the client finds its files where it stands, and the server none
    asked = ("count(*) AS n FROM ns.t.snapshots", "table AS n FROM firnline.snapshots", "id AS n FROM ns.t")
    queries = "; ".join(f"SELECT {each}" for each in asked)
    with connect_server({**around, "HOME": str(server), "PYSPARK_PYTHON": sys.executable}, server, cores=1) as remote:
        ended = subprocess.run(
            [FIRNLINE, "sql", queries, "--output", "csv"],
            env={**here, "SPARK_REMOTE": remote}, cwd=home, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert (ended.returncode, ended.stdout.split()) == (0, ["n", "1", "n", "mine.ns.t", "n", "1"]), ended.stderr


KEPT_ANSWERS = """
import os
from pyspark.sql import SparkSession
from firnline.lake import open_lake

ROWS, TABLES = "SELECT id AS n FROM ns.t", "SELECT table AS n FROM firnline.snapshots"
spark, homes = SparkSession.builder.getOrCreate(), (os.environ["PYICEBERG_HOME"], os.environ["OTHER_HOME"])
kept = []
for home in homes:
    os.environ["PYICEBERG_HOME"] = home
    kept += open_lake(session=spark).sql(f"{ROWS}; {ROWS} WHERE id > 1; {TABLES}")
print([[row.n for row in answer.collect()] for answer in kept])
"""


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_an_answer_stays_what_it_is_when_others_were_asked_for(home: Path, tmp_path: Path) -> None:
    """The server looks up whatever a query names whenever its rows are asked for. Two lakes ask in one session."""
    other = lake_of(tmp_path, "another person", "other", 2)
    around = surroundings(tmp_path)
    with connect_server({**around, "PYSPARK_PYTHON": sys.executable}, tmp_path, cores=1) as remote:
        ended = subprocess.run(
            [sys.executable, "-c", KEPT_ANSWERS], env={**os.environ, "SPARK_REMOTE": remote, "OTHER_HOME": str(other)},
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert ended.stdout.split("\n")[0] == "[[1], [], ['mine.ns.t'], [2], [2], ['other.ns.t']]", ended.stderr
