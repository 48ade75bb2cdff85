"""Every test that the page of promises names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "concepts" / "promises.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[^`]+\.py)(?:::(\w+))?`", PAGE)))


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_a_test_that_is_named_is_there(file: str, test: str) -> None:
    defined = {
        each.name for each in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(each, ast.FunctionDef)
    }
    assert not test or test in defined


def test_every_promise_has_a_test_that_tries_to_break_it() -> None:
    rows = re.findall(r"^\| (\d+)\. .*?\| (.*?) \|$", PAGE, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 16))
    assert all("`tests/" in tried for _, tried in rows)
