"""Statements as they are understood, without any session."""

from __future__ import annotations

from typing import Any, cast

import pytest

from firnline.cli.main import run
from firnline.errors import UsageError
from firnline.model.times import DAY_MS
from firnline.ops.marks.tags import FOREVER
from firnline.sql.session import View, _with_views
from firnline.sql.text.statements import Describe, Query, ShowTables, TagSnapshot, UseTable, parse
from firnline.sql.text.versions import AtInstant, AtVersion, Version
from firnline.sql.text.words import ends, split


def query(text: str) -> Query:
    found = parse(text)
    assert isinstance(found, Query)
    return found


def rewritten(text: str) -> str:
    found = query(text)
    views = [View(named, cast("Any", None), "x", f"v{place}") for place, named in enumerate(found.tables)]
    return " ".join(_with_views(found, views).split())


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (
            "TAG snapshot 4729 AS 'incident-2024-03-15-conjunction-alert' WITH RETENTION FOREVER",
            TagSnapshot("4729", None, "incident-2024-03-15-conjunction-alert", FOREVER),
        ),
        ("tag SNAPSHOT 7 of a.b.c as 'n' with retention 1 day", TagSnapshot("7", "a.b.c", "n", DAY_MS)),
        (
            "TAG snapshot 7 OF `a`.`odd name` AS 'n' WITH RETENTION 30 DAYS",
            TagSnapshot("7", "a.odd name", "n", 30 * DAY_MS),
        ),
        ("TAG snapshot 7 OF '/lake/t' AS 'n' WITH RETENTION FOREVER", TagSnapshot("7", "/lake/t", "n", FOREVER)),
        ("USE TABLE a.b", UseTable("a.b")),
    ],
)
def test_the_statements_of_our_own(text: str, meaning: object) -> None:
    assert parse(text) == meaning


@pytest.mark.parametrize(
    "text",
    [
        "TAG snapshot 7",
        "TAG 7 AS 'n' WITH RETENTION FOREVER",
        "TAG snapshot 7 AS 'n'",
        "TAG snapshot 7 AS 'n' WITH RETENTION 3 WEEKS",
        "TAG snapshot 7 OF AS 'n' WITH RETENTION FOREVER",
        "USE lake",
        "USE TABLE a.b c",
        "INSERT INTO a.b VALUES (1)",
        "DELETE FROM a.b",
        "UPDATE a.b SET x = 1",
        "MERGE INTO a.b USING c.d ON true WHEN MATCHED THEN DELETE",
        "CREATE TABLE a.b (x INT)",
        "CREATE TABLE a.b AS SELECT 1",
        "ALTER TABLE a.b ADD COLUMN x INT",
        "TRUNCATE TABLE a.b",
        "SET x = 1",
        "CALL lake.system.expire_snapshots('a.b')",
        "DESCRIBE",
        "DESCRIBE a.b PARTITION (x = 1)",
        "DESCRIBE QUERY SELECT 1",
        "SHOW",
        "SHOW COLUMNS IN a.b",
        "SHOW TABLES IN a.b 'x' 'y'",
        "SELECT 'open",
        "SELECT (",
    ],
)
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(text)
    assert refused.value.hint


def test_statements_are_split_at_semicolons_only() -> None:
    assert list(split("SELECT ';' ; -- a; b\n SELECT 2;;")) == ["SELECT ';' ", " -- a; b\n SELECT 2"]
    assert list(split("SHOW TABLES; DESCRIBE a.b; SELECT 1")) == ["SHOW TABLES", " DESCRIBE a.b", " SELECT 1"]


def test_a_shell_reads_until_the_semicolon() -> None:
    assert not ends("SELECT 1")
    assert not ends("SELECT ';")
    assert ends("SELECT 1;")


def test_names_become_views_and_all_else_stays() -> None:
    assert rewritten("SELECT  s.x['a.b.c'] FROM a.b.all_snapshots s JOIN `a`.b.entries e USING (i)") == (
        "SELECT s.x['a.b.c'] FROM v0 s JOIN v1 e USING (i)"
    )


def test_a_table_without_an_alias_is_called_by_its_last_name() -> None:
    text = "SELECT lake.a.b.refs.name, b.refs.type, refs.x FROM lake.a.b.refs WHERE lake.a.b.refs.y > 1"
    assert rewritten(text) == "SELECT `refs`.name, `refs`.type, refs.x FROM v0 AS `refs` WHERE `refs`.y > 1"


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("SELECT /*+ BROADCAST(b) */ x FROM a.b", "SELECT /*+ BROADCAST(b) */ x FROM v0 AS `b`"),
        ("SELECT x FROM a.b TABLESAMPLE (5 ROWS) WHERE y", "SELECT x FROM v0 TABLESAMPLE (5 ROWS) AS `b` WHERE y"),
        (
            "SELECT x FROM a.b TABLESAMPLE (BUCKET 1 OUT OF 2 ON x), a.c",
            "SELECT x FROM v0 TABLESAMPLE (BUCKET 1 OUT OF 2 ON x) AS `b`, v1 AS `c`",
        ),
        ("SELECT x FROM a.b TABLESAMPLE (5 ROWS) AS s", "SELECT x FROM v0 TABLESAMPLE (5 ROWS) AS s"),
        ("SELECT a.b.*, b . * FROM a.b", "SELECT `b`.*, b . * FROM v0 AS `b`"),
        ("SELECT window(t, '1 day') FROM a.b", "SELECT window(t, '1 day') FROM v0 AS `b`"),
        (
            "SELECT sum(x) OVER w FROM a.b WINDOW w AS (ORDER BY y)",
            "SELECT sum(x) OVER w FROM v0 AS `b` WINDOW w AS (ORDER BY y)",
        ),
    ],
)
def test_an_alias_comes_after_a_sample_and_hints_and_stars_mean_the_table(text: str, rest: str) -> None:
    assert rewritten(text) == rest


def test_what_the_query_defines_itself_is_left_alone() -> None:
    text = "WITH refs AS (SELECT 1 AS q FROM a.b.refs) SELECT q FROM refs, range(3) r, (VALUES (1)) w"
    assert rewritten(text) == (
        "WITH refs AS (SELECT 1 AS q FROM v0 AS `refs`) SELECT q FROM refs, range(3) r, (VALUES (1)) w"
    )


@pytest.mark.parametrize(
    ("clause", "wanted"),
    [
        ("FOR TAG 'monthly'", AtVersion("monthly")),
        ("VERSION AS OF 123", AtVersion("123")),
        ("FOR VERSION AS OF 'main'", AtVersion("main")),
        ("FOR SYSTEM_VERSION AS OF 123", AtVersion("123")),
        ("SYSTEM_VERSION AS OF 'audit'", AtVersion("audit")),
        ("TIMESTAMP AS OF '2024-07-15 00:00:00'", AtInstant("'2024-07-15 00:00:00'")),
        ("FOR TIMESTAMP AS OF TIMESTAMP '2024-07-15'", AtInstant("TIMESTAMP '2024-07-15'")),
        ("FOR SYSTEM_TIME AS OF 1721001600", AtInstant("1721001600")),
        ("SYSTEM_TIME AS OF date_sub(current_date(), (1 + 2))", AtInstant("date_sub(current_date(), (1 + 2))")),
        (
            "TIMESTAMP AS OF now() - INTERVAL 1 DAY 2 HOURS + INTERVAL '1 3' DAY TO HOUR",
            AtInstant("now() - INTERVAL 1 DAY 2 HOURS + INTERVAL '1 3' DAY TO HOUR"),
        ),
        ("timestamp as of -(5 * 3)", AtInstant("-(5 * 3)")),
        ("TIMESTAMP AS OF current_date - INTERVAL -2 days", AtInstant("current_date - INTERVAL -2 days")),
    ],
)
@pytest.mark.parametrize(
    "rest", ["", " t", " AS t WHERE t.y = 'FOR TAG'", ", c.d u JOIN e.f ON u.x > 1", " WHERE x > 1"]
)
def test_a_table_at_a_version(clause: str, wanted: Version, rest: str) -> None:
    text = f"SELECT x FROM a.b {clause}{rest}"
    found = query(text)
    assert [each.version for each in found.tables if each.path.names == ("a", "b")] == [wanted]
    assert [each.version for each in found.tables if each.path.names != ("a", "b")] == [None] * (len(found.tables) - 1)
    assert clause not in found.text
    assert len(found.text) == len(text)


def test_several_tables_each_at_its_version() -> None:
    found = query("SELECT x FROM a.b VERSION AS OF 123 t, a.c FOR TAG 'x' u, a.d TIMESTAMP AS OF '2024-07-15' v, a.e w")
    versions = {each.path.names[1]: each.version for each in found.tables}
    assert versions == {"b": AtVersion("123"), "c": AtVersion("x"), "d": AtInstant("'2024-07-15'"), "e": None}


@pytest.mark.parametrize(
    "text",
    [
        "WITH q AS (SELECT 1) SELECT * FROM q VERSION AS OF 1",
        "SELECT * FROM range(3) TIMESTAMP AS OF '2024-01-01'",
        "SELECT * FROM a.b TIMESTAMP AS OF",
        "SELECT * FROM a.b TIMESTAMP AS OF now(",
    ],
)
def test_a_version_of_no_table_is_never_passed_over(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(text)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("text", "names", "extended"),
    [
        ("DESCRIBE a.b", ("a", "b"), False),
        ("desc table a.`odd name`.files", ("a", "odd name", "files"), False),
        ("DESCRIBE TABLE EXTENDED a.b", ("a", "b"), True),
        ("DESCRIBE EXTENDED a.b", ("a", "b"), True),
    ],
)
def test_describe(text: str, names: tuple[str, ...], extended: bool) -> None:
    found = parse(text)
    assert isinstance(found, Describe)
    assert (found.table.path.names, found.extended) == (names, extended)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("SHOW TABLES", ShowTables()),
        ("show tables in lake.sales", ShowTables("lake.sales")),
        ("SHOW TABLES FROM sales LIKE 'a*|b*'", ShowTables("sales", "a*|b*")),
        ("SHOW TABLES 'a*'", ShowTables(None, "a*")),
    ],
)
def test_show_tables(text: str, meaning: ShowTables) -> None:
    assert parse(text) == meaning


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("SELECT count(*) FROM a.b", False),
        ("SELECT x FROM a.b GROUP BY x", False),
        ("SELECT * FROM a.b", True),
        ("SELECT b.* FROM a.b", True),
        ("SELECT x FROM (SELECT * FROM a.b)", True),
        ("SELECT x FROM a.b NATURAL JOIN a.c", True),
        ("SELECT x FROM a.b AS s(x, y)", True),
        ("SELECT x FROM (SELECT y FROM a.b) AS s(x)", False),
        ("SELECT * FROM a.b PIVOT (sum(x) FOR y IN (1, 2))", True),
    ],
)
def test_which_queries_need_whole_rows(text: str, whole: bool) -> None:
    assert query(text).whole_rows is whole


@pytest.mark.parametrize(
    "arguments",
    [[], ["SELECT 1", "--shell"], ["SELECT 1", "--output", "xml"], ["SELECT 1", "--output", "parquet"]],
)
def test_a_wrong_command_line_starts_no_session(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", *arguments]) == UsageError.exit_code
    assert "hint:" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "near"), [("SELEC 1", "SELECT"), ("shwo tables", "SHOW"), ("wiht x as (y)", "WITH")])
def test_a_misspelt_first_word_is_named(text: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"no statement begins with {text.split(maxsplit=1)[0]}") as refused:
        parse(text)
    assert refused.value.hint == f"did you mean {near}?"


@pytest.mark.parametrize(
    ("text", "told", "shown"),
    [
        ("SHOW TABLES IN", "a namespace's name is missing", "SHOW TABLES IN catalog.ns"),
        ("SHOW TABLES FROM .a", "a namespace's name is missing", "SHOW TABLES IN catalog.ns"),
        ("SHOW TABLES IN a LIKE", "the pattern after LIKE is missing", "SHOW TABLES IN catalog.ns"),
        ("SHOW TABLES LIKE", "the pattern after LIKE is missing", "SHOW TABLES IN catalog.ns"),
        ("USE TABLE .", "a table's name is missing", "USE TABLE ns.table"),
        ("TAG SNAPSHOT 5 OF", "a table's name is missing", "TAG snapshot N OF"),
    ],
)
def test_what_is_missing_is_told_with_the_statement_that_misses_it(text: str, told: str, shown: str) -> None:
    with pytest.raises(UsageError, match=told) as refused:
        parse(text)
    assert refused.value.hint.startswith(shown)
