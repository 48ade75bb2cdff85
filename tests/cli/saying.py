"""Running a command in this process, and what it says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from firnline.cli.main import run

Capture = pytest.CaptureFixture[str]


def said(capsys: Capture, *arguments: str, code: int = 0) -> str:
    """Returns what a command says on stdout; on stderr where it is to fail."""
    capsys.readouterr()
    assert run(list(arguments)) == code
    shown = capsys.readouterr()
    return shown.err if code else shown.out


def facts(capsys: Capture, *arguments: str) -> Any:
    return json.loads(said(capsys, *arguments, "--json"))
