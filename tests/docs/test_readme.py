"""The README: its two commands, its picture of a plan."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from demo import lake
from firnline.cli.main import run
from firnline.model.times import parse_instant

from .conftest import entered
from .pages import ROOT, blocks
from .shell import CUT

README = ROOT / "README.md"
CLOCK = "2026-08-22T09:00:00Z"


def test_names_the_two_commands() -> None:
    typed = [line.split("#")[0].strip() for block in blocks(README, "sh") for line in block.splitlines()]
    assert {"make demo", "make test"} <= set(typed)


def same(line: str) -> str:
    """Returns the line without what differs between two lakes made at the same time: ids, sizes, widths of columns."""
    line = re.sub(r"(?<![\w-])\d{15,19}(?![\w-])", "ID", line)
    return re.sub(r"\s+", " ", re.sub(r"[\d.,]+ (?:[KMGT]i)?B\b", "SIZE", line)).strip()


def test_the_pictures_are_what_plan_prints(
    tmp_path: Path, inside: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lake.build(tmp_path, parse_instant(CLOCK))
    entered(tmp_path, inside)
    lines = [is_printed(block, capsys) for block in blocks(README, "text")]
    assert lines[0] > 5
    assert lines[1] > 20


def is_printed(block: str, capsys: pytest.CaptureFixture[str]) -> int:
    """Returns how many lines of its output a block of the README shows. Raises AssertionError unless all are printed
    in this order.
    """
    command, *picture = block.splitlines()
    words = command.removeprefix("$ firnline ").split()
    capsys.readouterr()
    assert run([*words, "--now", CLOCK]) == 0
    printed = [same(line) for line in capsys.readouterr().out.splitlines()]
    for piece in "\n".join(map(same, picture)).split(CUT):
        lines = piece.strip("\n").splitlines()
        starts = [at for at in range(len(printed)) if printed[at : at + len(lines)] == lines]
        assert starts, f"not in the plan of the demo lake, or not in this order:\n{piece}\n\n" + "\n".join(printed)
        printed = printed[starts[0] + len(lines) :]
    return len(picture)
