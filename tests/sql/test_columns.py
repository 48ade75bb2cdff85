"""Which names of a query must be columns: a slip is told before Spark starts, and what Spark knows is not refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from firnline.errors import UsageError
from firnline.sql.text.columns import refuse_unknown
from firnline.sql.text.statements import Query, parse

FIRNLINE = Path(sys.executable).parent / "firnline"


def columns(text: str) -> set[str]:
    found = parse(text)
    assert isinstance(found, Query)
    return set(found.columns)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT a, t.b FROM ns.t WHERE c > 1 GROUP BY d HAVING max(e) > 1 ORDER BY f", "abcdef"),
        ("SELECT s.a, r.b FROM ns.t s JOIN ns.u AS r ON s.c = r.d", "abcd"),
        ("SELECT count(*) FILTER (WHERE a) FROM ns.t", "a"),
        ("SELECT CASE WHEN a THEN b ELSE c END, CAST(d AS DATE), e['k'], f[0] FROM ns.t", "abcdef"),
        ("SELECT * FROM ns.t WHERE a IN (SELECT b FROM ns.u)", "ab"),
        ("SELECT /*+ BROADCAST(t) */ t.*, a FROM ns.t", "a"),
    ],
)
def test_names_that_only_columns_have(text: str, names: str) -> None:
    assert columns(text) == set(names)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 AS one, one + 1 AS two FROM ns.t ORDER BY two",
        "SELECT n FROM (SELECT 1 AS n FROM ns.t)",
        "WITH r(n) AS (SELECT 1) SELECT n, r.n FROM r",
        "SELECT summary.k, data_file.file_path.x FROM ns.t",
        "SELECT transform(array(1), x -> x + 1) FROM ns.t",
        "SELECT c FROM ns.t LATERAL VIEW explode(xs) e AS c",
        "SELECT col FROM (SELECT explode(xs) FROM ns.t)",
        "SELECT col1 FROM (SELECT inline(xs) FROM ns.t)",
        "SELECT id FROM range(3)",
        "SELECT col1 FROM VALUES (1), (2)",
        "SELECT `max(a)` FROM (SELECT 1 AS `max(a)` FROM ns.t)",
        "SELECT _file, _pos FROM ns.t",
        "SELECT current_user, current_date, user FROM ns.t ORDER BY ALL",
        "SELECT 1 FROM ns.t GROUP BY ALL",
        "SELECT timestampdiff(MINUTE, DATE '2026-01-01', now()), INTERVAL 3 DAYS FROM ns.t",
        "SELECT extract(YEAR FROM now()) FROM ns.t",
        "SELECT row_number() OVER w FROM ns.t WINDOW w AS (ORDER BY 1)",
        "SELECT * FROM ns.t PIVOT (sum(1) FOR x IN (1, 2))",
        "SELECT t FROM ns.t",
        "SELECT part FROM (SELECT whole.part FROM ns.t)",
        "SELECT part FROM (SELECT t.whole.part FROM ns.t)",
        "SELECT c0 FROM (SELECT json_tuple('{}', 'a') FROM ns.t)",
        "SELECT col0 FROM (SELECT stack(2, 1, 2) FROM ns.t)",
        "SELECT pos, col FROM (SELECT posexplode(array(1)) FROM ns.t)",
        "SELECT /*+ BROADCAST(s) */ 1 FROM ns.t s",
        "SELECT datediff(DAY, now(), now()), timestampadd(HOUR, 1, now()), date_diff(MONTH, now(), now()) FROM ns.t",
        "FROM ns.t |> EXTEND 1 AS one |> SELECT one",
        "SELECT c, d FROM (SELECT 1, 2 FROM ns.t) AS q(c, d)",
        "SELECT aggregate(array(1), 0, (acc, x) -> acc + x, acc -> acc * 10) FROM ns.t",
        "SELECT 1 FROM ns.t TABLESAMPLE (10 ROWS) ORDER BY 1 NULLS LAST",
        "SELECT file_path FROM (SELECT data_file.* FROM ns.t.entries)",
        "SELECT lat FROM (SELECT t.loc.* FROM ns.t t)",
        "SELECT deep FROM (SELECT loc.inner.* FROM ns.t)",
        "WITH x AS (SELECT loc.* FROM ns.t) SELECT x.lat FROM x",
        "SELECT a FROM (SELECT j.* FROM (SELECT from_json('{}', 'a INT') AS j FROM ns.t))",
        "SELECT key FROM (SELECT TRANSFORM(id, name) USING 'cat' FROM ns.t)",
        "SELECT window.start FROM ns.t GROUP BY window(ts, '1 day')",
    ],
)
def test_what_may_be_something_else_is_left_to_spark(text: str) -> None:
    assert columns(text) == set()


def test_the_case_does_not_count() -> None:
    refuse_unknown(["Committed_AT"], ["committed_at"])


def test_near_names_are_offered() -> None:
    with pytest.raises(UsageError, match="no table of the query has a column 'commited_at'") as refused:
        refuse_unknown(["commited_at"], ["committed_at", "snapshot_id"])
    assert refused.value.hint == "did you mean committed_at?"


def test_all_names_where_none_is_near() -> None:
    with pytest.raises(UsageError) as refused:
        refuse_unknown(["zzz"], ["committed_at", "snapshot_id"])
    assert refused.value.hint == "there are: committed_at, snapshot_id"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    from pyiceberg.catalog.sql import SqlCatalog

    uri = f"sqlite:///{tmp_path}/catalog.db"
    (tmp_path / ".pyiceberg.yaml").write_text(f"catalog:\n  lake:\n    type: sql\n    uri: {uri}\n")
    catalog = SqlCatalog("lake", uri=uri, warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("ns")
    table = catalog.create_table("ns.t", pa.schema([("amount", pa.int64())]))
    table.append(pa.table({"amount": [1, 2]}))
    catalog.close()
    return tmp_path


@pytest.mark.parametrize(
    ("statement", "hint"),
    [
        ("SELECT amuont FROM lake.ns.t", "did you mean amount?"),
        ("SELECT 1; SELECT sum(t.amuont) FROM lake.ns.t t", "did you mean amount?"),
        ("SELECT commited_at FROM lake.ns.t.all_snapshots", "did you mean committed_at?"),
        ("SELECT snapshotid FROM firnline.snapshots", "did you mean snapshot_id?"),
    ],
)
@pytest.mark.sampled(1)
def test_no_java_is_needed_to_tell_a_wrong_column(lake: Path, statement: str, hint: str) -> None:
    environment = {**os.environ, "JAVA_HOME": str(lake), "PYICEBERG_HOME": str(lake), "PATH": str(lake)}
    ended = subprocess.run(
        [FIRNLINE, "sql", statement], capture_output=True, text=True, env=environment, cwd=lake, check=False
    )
    assert (ended.returncode, "no table of the query has a column" in ended.stderr) == (2, True), ended.stderr
    assert hint in ended.stderr


@pytest.mark.full
def test_a_column_that_is_there_needs_java(lake: Path) -> None:
    environment = {**os.environ, "JAVA_HOME": str(lake), "PYICEBERG_HOME": str(lake), "PATH": str(lake)}
    ended = subprocess.run(
        [FIRNLINE, "sql", "SELECT Amount FROM lake.ns.t"],
        capture_output=True, text=True, env=environment, cwd=lake, check=False,
    )  # fmt: skip
    assert "Spark cannot be started" in ended.stderr
