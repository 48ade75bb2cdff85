"""Every question of the proposal, asked of a table whose snapshots of that time are gone; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from firnline.app.places import now_ms
from firnline.cli.main import run
from firnline.errors import UnreadableMetadata
from firnline.lake import Lake, open_lake
from firnline.model.times import DAY_MS, HOUR_MS, parse_instant
from firnline.sql.session import StatementAnswer

from .lakes import TABLE, Facts

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
    assert {name: [row["a"] for row in rows] for name, rows in answers.items()} == {
        name: [answer] for name, answer in july.answers.items()
    }


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
    until = parse_instant(again.text.rpartition("kept until ")[2])
    assert abs(until - now_ms() - 7 * DAY_MS) < HOUR_MS, "from now on, however old the snapshot is"
    refs = open_lake().places.source(TABLE).load().refs
    assert refs["incident"].snapshot == state.current
    (frame,) = lake.sql(f"SELECT sum(x) AS s, count(*) AS n FROM {TABLE} FOR TAG 'incident' AS t")
    assert [tuple(row) for row in frame.collect()] == [(3, 5)]


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
    assert run(["sql", query, str(tmp_path / "o.csv"), "--output", "csv"]) == 1
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
        "sys.stdin", io.StringIO(f"SELECT 1\nFROM nowhere.at.all;\nSELECT name FROM {TABLE}.refs\n;quit")
    )
    assert run(["sql", "--shell"]) == 0
    printed = capsys.readouterr()
    assert "no such table" in printed.err
    assert "main" in printed.out
