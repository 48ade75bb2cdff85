"""Every question of the proposal, asked of a table whose snapshots of that time are gone; and what is refused."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from firnline.app.places import now_ms
from firnline.cli.main import run
from firnline.errors import NoSuchTable, UnreadableMetadata, UsageError
from firnline.lake import Lake, open_lake
from firnline.model.times import DAY_MS, HOUR_MS, parse_moment
from firnline.sql.session import StatementAnswer
from firnline.sql.source import register

from .conftest import enter
from .lakes import TABLE, Facts, build, expire

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
ALL, ENTRIES = f"{TABLE}.all_snapshots", f"lake.{TABLE}.entries"


@pytest.fixture
def ask(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs `firnline sql` and returns its rows."""

    def asked(statement: str) -> list[dict[str, Any]]:
        capsys.readouterr()
        code = run(["sql", statement, "--output", "json"])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        found: list[dict[str, Any]] = json.loads(printed.out)
        return found

    return asked


def test_each_question_is_answered_after_all_of_july_expired(july: Facts, ask: Any) -> None:
    assert ask(f"SELECT count(*) AS n FROM {TABLE}.snapshots") == [{"n": 1}]
    answers = {name: ask(text) for name, text in july.questions(ALL, ENTRIES).items()}
    assert {name: [next(iter(row.values())) for row in rows] for name, rows in answers.items()} == {
        name: [answer] for name, answer in july.answers.items()
    }


@pytest.mark.full
def test_each_question_is_answered_in_a_plain_spark_session(july: Facts, spark: SparkSession) -> None:
    """Without any statement of firnline's: its data source, two views, and Spark's own SQL."""
    register(spark)
    for what in ("all_snapshots", "entries"):
        options = f"table 'lake.{TABLE}', what '{what}', home '{july.folder}'"
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW plain_{what} USING firnline OPTIONS ({options})")
    for name, text in july.questions("plain_all_snapshots", "plain_entries").items():
        answer = july.answers[name]
        (found,) = spark.sql(text).collect()
        wanted = datetime.fromisoformat(answer).timestamp() if name in ("file added", "partition added") else answer
        assert (found[0].timestamp() if isinstance(found[0], datetime) else found[0]) == wanted, name


def test_rows_tags_and_the_seeds_statements(july: Facts, spark: SparkSession) -> None:
    lake = open_lake(session=spark)
    state = lake.places.source(TABLE).load()
    _, tagged, again = lake.sql(
        f"USE TABLE {TABLE}; TAG snapshot {state.current} AS 'incident' WITH RETENTION FOREVER;"
        f"TAG snapshot {state.current} OF {TABLE} AS 'week' WITH RETENTION 7 DAYS"
    )
    assert isinstance(tagged, StatementAnswer)
    assert "kept forever" in tagged.text
    assert isinstance(again, StatementAnswer)
    until = parse_moment(again.text.rpartition("kept until ")[2])
    assert abs(until - now_ms() - 7 * DAY_MS) < HOUR_MS, "from now on, however old the snapshot is"
    refs = open_lake().places.source(TABLE).load().refs
    assert refs["incident"].snapshot == state.current
    (frame,) = lake.sql(f"SELECT sum(x) AS s, count(*) AS n FROM {TABLE} FOR TAG 'incident' AS t")
    assert [tuple(row) for row in frame.collect()] == [(3, 5)]


INCIDENT = "incident-2024-03-15-conjunction-alert"


def test_queries_by_timestamp_and_by_tag_here_and_in_a_plain_session(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    build(tmp_path)
    lake = open_lake(session=spark)
    times = {"2024-07-03": 3, "2024-07-10": 8, "2024-08-01 12:00:00": 4}
    for day, count in times.items():
        assert _collected(lake, f"SELECT count(*) FROM {TABLE} TIMESTAMP AS OF '{day}'") == [(count,)]
    asked = f"SELECT count(*) FROM {TABLE} FOR SYSTEM_TIME AS OF date_add(date '2024-07-01', 9) t"
    assert _collected(lake, asked) == [(8,)]
    second = next(row.snapshot_id for row in _frame(lake, f"SELECT * FROM {TABLE}.history LIMIT 2").collect()[1:])
    tag = f"TAG snapshot {second} AS '{INCIDENT}' WITH RETENTION FOREVER;"
    said = [answer for answer in lake.sql(f"USE TABLE {TABLE}; {tag}") if isinstance(answer, StatementAnswer)]
    assert "kept forever" in said[-1].text
    expire()
    for clause in (f"FOR TAG '{INCIDENT}'", f"VERSION AS OF '{INCIDENT}'", f"FOR SYSTEM_VERSION AS OF {second}"):
        assert _collected(lake, f"SELECT count(*) FROM {TABLE} {clause}") == [(8,)]
    with pytest.raises(UsageError, match="no snapshot from 2024-07-03") as refused:
        _collected(lake, f"SELECT count(*) FROM {TABLE} TIMESTAMP AS OF '2024-07-03'")
    assert "all_snapshots" in refused.value.hint
    _in_a_plain_session(spark, tmp_path)


def _in_a_plain_session(spark: SparkSession, folder: Path) -> None:
    options = f"table 'lake.{TABLE}', what 'rows', home '{folder}'"
    for name, at, count in (
        ("tagged", f"versionAsOf '{INCIDENT}'", 8),
        ("timed", "timestampAsOf '2024-08-02T12:00:00Z'", 5),
    ):
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW plain_{name} USING firnline OPTIONS ({options}, {at})")
        assert [tuple(row) for row in spark.sql(f"SELECT count(*) FROM plain_{name}").collect()] == [(count,)]


def test_tables_are_shown_and_described(july: Facts, ask: Any) -> None:
    assert ask("SHOW TABLES IN ns LIKE 'ev*'") == [
        {"namespace": "lake.ns", "tableName": "events", "isTemporary": False}
    ]
    with pytest.raises(NoSuchTable, match=r"no catalog is called lake\.nowhere"):
        list(open_lake().sql("SHOW TABLES IN lake.nowhere"))
    columns = ask(f"DESCRIBE TABLE {TABLE}")
    assert [(each["col_name"], each["data_type"]) for each in columns] == [("day", "date"), ("x", "bigint")]
    told = {each["col_name"]: each["data_type"] for each in ask(f"DESCRIBE EXTENDED {TABLE}.refs")}
    assert told["snapshot_id"] == "bigint"
    assert told["Format"] == "iceberg"
    assert "firnline.expired-snapshots-path" in "".join(told)


def test_the_ledger_and_the_runs_tell_why_and_when(july: Facts, ask: Any) -> None:
    (row,) = ask(
        f"SELECT l.lost_reasons, l.run_end, r.state, l.run_outcomes['deleted'].files AS gone "
        f"FROM {TABLE}.ledger l JOIN {TABLE}.runs r ON l.run = r.run WHERE l.snapshot_id = {july.adding}"
    )
    assert row["state"] == "done"
    assert row["run_end"] == "purged"
    assert row["lost_reasons"]
    assert row["gone"] > 0


def test_a_damaged_history_is_said_and_live_snapshots_are_still_listed(july: Facts, spark: SparkSession) -> None:
    """The trouble is met by an executor, and comes back as the error that it was."""
    (listed,) = Path(july.folder).glob("warehouse/**/expired-snapshots-*.json")
    whole = listed.read_bytes()
    lake = open_lake(session=spark)
    try:
        listed.write_bytes(whole[:-9])
        with pytest.raises(UnreadableMetadata, match="history of expired snapshots cannot be read"):
            _collected(lake, f"SELECT count(*) FROM {ALL}")
        assert _collected(lake, f"SELECT count(*) FROM {TABLE}.snapshots") == [(1,)]
        assert _collected(lake, f"SELECT count(*) FROM {ALL} WHERE NOT expired") == [(1,)]
    finally:
        listed.write_bytes(whole)


def _frame(lake: Lake, text: str) -> DataFrame:
    (found,) = lake.sql(text)
    assert not isinstance(found, StatementAnswer)
    return found


def _collected(lake: Lake, text: str) -> list[tuple[Any, ...]]:
    from firnline.sql.faults import understanding

    with understanding():
        return [
            tuple(row)
            for answer in lake.sql(text)
            if not isinstance(answer, StatementAnswer)
            for row in answer.collect()
        ]


def test_the_data_source_by_its_options(july: Facts, spark: SparkSession) -> None:
    list(open_lake(session=spark).sql("SELECT 1"))  # registers it
    reader = spark.read.format("firnline").option("catalog", "lake").option("home", str(july.folder))
    frame = reader.option("table", TABLE).option("columns", "expired,snapshot_id").load()
    assert frame.columns == ["expired", "snapshot_id"]
    assert sorted(row.expired for row in frame.collect()) == [False, True, True, True, True]


def test_every_kind_of_output(july: Facts, spark: SparkSession, tmp_path: Path, capsys: Any) -> None:
    query = f"SELECT 'a,b' AS t, snapshot_id, parent_id FROM {ALL} WHERE snapshot_id = {july.adding}"
    assert run(["sql", query, str(tmp_path / "o.csv"), "--output", "csv"]) == 0
    assert (tmp_path / "o.csv").read_text() == f't,snapshot_id,parent_id\n"a,b",{july.adding},\n'
    assert run(["sql", query, str(tmp_path / "o.csv"), "--output", "csv"]) == 2, "what is there is not overwritten"
    assert run(["sql", query, str(tmp_path / "o"), "--output", "parquet"]) == 0
    assert [row.snapshot_id for row in spark.read.parquet(str(tmp_path / "o")).collect()] == [july.adding]
    capsys.readouterr()
    assert run(["sql", query]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["a,b", str(july.adding), "NULL"]
    assert lines[2] == "1 row"


@pytest.mark.parametrize(
    ("statement", "code", "words"),
    [
        (f"DROP TABLE {TABLE}", 2, "DROP is not run here"),
        (f"SELECT nothing FROM {ALL}", 2, "nothing"),
        ("SELECT 1 FROM ns.nowhere", 10, "no such table: ns.nowhere"),
        (f"SELECT 1 FROM {TABLE} FOR TAG 'none'", 2, "none"),
        (f"SELECT 1 FROM {TABLE} TIMESTAMP AS OF 'soon'", 2, "not an instant"),
        (f"SELECT 1 FROM {TABLE} TIMESTAMP AS OF x", 2, "x"),
        (f"SELECT 1 FROM {TABLE}.refs VERSION AS OF 1", 2, "the same at every version"),
        (f"SELECT 1 FROM {TABLE} WHERE (", 2, "cannot be understood"),
        ("TAG snapshot 1 AS 'x' WITH RETENTION FOREVER", 2, "TAG without a table"),
    ],
)
def test_what_is_refused(
    july: Facts, spark: SparkSession, capsys: pytest.CaptureFixture[str], statement: str, code: int, words: str
) -> None:
    assert run(["sql", statement]) == code
    assert words in capsys.readouterr().err


def test_the_shell_goes_on_after_an_error(
    july: Facts, spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    monkeypatch.setattr(
        "sys.stdin", io.StringIO(f"SELECT 1\nFROM nowhere.at.all;\nSELECT name FROM {TABLE}.refs\n;\nquit")
    )
    assert run(["sql", "--shell"]) == 0
    printed = capsys.readouterr()
    assert "no such table" in printed.err
    assert "main" in printed.out
