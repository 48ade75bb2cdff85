"""A Paimon table's metadata in Spark SQL: by `firnline sql`, and by the data source."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from firnline.cli.main import run
from firnline.spark.session import session
from firnline.sql.source import register
from harness.paimon.layout import SNAPSHOT, PaimonRoot
from harness.paimon.shapes import MAIN

from .small import Copy

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def remembering(made: Path) -> Iterator[Copy]:
    """A table of which 1, 3 and 5 expired, and are remembered."""
    copy = Copy.of(made, "sql")
    copy.expire(keep={"history": "forever"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYICEBERG_HOME", str(copy.folder))
        patch.chdir(copy.folder)
        yield copy
    shutil.rmtree(copy.folder)


def said(capsys: pytest.CaptureFixture[str], statement: str) -> list[dict[str, object]]:
    capsys.readouterr()
    code = run(["sql", statement, "--output", "json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    found: list[dict[str, object]] = json.loads(out)
    return found


@pytest.mark.full
def test_firnline_sql_answers_of_what_expired(remembering: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    table = f"`{remembering.table}`"
    found = said(
        capsys,
        f"SELECT s.snapshot_id, s.operation, size(l.lost_reasons) > 0 AS told FROM {table}.all_snapshots s "
        f"JOIN {table}.ledger l ON s.snapshot_id = l.snapshot_id WHERE s.expired ORDER BY 1",
    )
    assert [(each["snapshot_id"], each["told"]) for each in found] == [(1, True), (3, True), (5, True)]
    live = said(capsys, f"SELECT count(*) AS n, sum(record_count) AS records FROM {table}.files")
    assert live == [{"n": len(remembering.reader().needs(PaimonRoot(MAIN, SNAPSHOT, "7")).data), "records": 3}]


@pytest.mark.full
def test_the_data_source_reads_every_table(remembering: Copy) -> None:
    spark: SparkSession = session()
    register(spark)

    def rows(what: str) -> list[object]:
        reader = spark.read.format("firnline").option("table", remembering.table).option("what", what)
        return list(reader.option("home", str(remembering.folder)).load().collect())

    assert {each.snapshot_id for each in rows("all_snapshots") if each.expired} == {1, 3, 5}  # type: ignore[attr-defined]
    assert len(rows("runs")) == 1
    assert len(rows("ledger")) == 3
    assert {each.name for each in rows("refs")} == {"main", "side", "two", "short", "side:two"}  # type: ignore[attr-defined]
    assert len(rows("history")) == 2
    assert len(rows("manifests")) > 0
    assert len(rows("entries")) >= len(rows("files")) > 0
