"""What Spark has against a statement, in one line."""

from __future__ import annotations

import pytest

from firnline.sql.faults import _first_line


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("[PARSE_SYNTAX_ERROR] Syntax error at 'x'. SQLSTATE: 42601\n== SQL ==\nx", "Syntax error at 'x'."),
        (
            "An error occurred while calling o3.sql.\n: org.apache.SparkException: [NOT_HERE] no such thing\n\tat x",
            "no such thing",
        ),
        ("plain: words", "plain: words"),
        ("", "RuntimeError"),
    ],
)
def test_the_reason_comes_without_what_stands_around_it(said: str, line: str) -> None:
    assert _first_line(RuntimeError(said)) == line
