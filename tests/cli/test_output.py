"""JSON on the terminal: written in pieces, and yet one text that says what the facts say."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest

from firnline.cli.terminal.output import JsonOutput
from firnline.plans.pages import Page


def written(facts: dict[str, Any], encoding: str, monkeypatch: pytest.MonkeyPatch) -> bytes:
    raw = io.BytesIO()
    target = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    monkeypatch.setattr(sys, "stdout", target)
    JsonOutput().show(Page(()), facts)
    target.flush()
    return raw.getvalue()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_pieces_of_json_are_one_document(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["plain", "größer", "表", "\u202eturned", "\U0001f9ca", "half \ud800", 'a "quote" \\ and \n a line']
    facts = {"tables": [{"table": f"{name} {number}"} for number in range(3_000) for name in names]}
    text = written(facts, encoding, monkeypatch)
    assert json.loads(text.decode(encoding)) == facts
    assert "\u202e" not in text.decode(encoding)
    assert text.endswith(b"}\n")


def test_where_all_letters_are_known_json_is_as_it_always_was(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"tables": [{"table": f"größer {number}", "victims": {}, "spared": []} for number in range(9_000)]}
    wanted = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    assert written(facts, "utf-8", monkeypatch).decode() == wanted
