"""On a terminal: tables fit its width, colours mean something and can be turned off, and a prompt is one question."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from firnline.cli.main import run

FIRNLINE = Path(sys.executable).with_name("firnline")
PLAN = ("plan", "lake.ns.events", "--retain-last", "1")
Lake = Any
LONG = "event_stream_number_00"
GREEN, YELLOW, RED = "\x1b[32m", "\x1b[33m", "\x1b[31;1m"


def on_terminal(*arguments: str, columns: int = 200, answer: str = "", **environment: str) -> tuple[str, int]:
    """Returns what a terminal of a width gets to show, and the exit code."""
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    variables = {"TERM": "xterm", **os.environ, **environment}
    for name in ("COLUMNS", "LINES", *([] if "NO_COLOR" in environment else ["NO_COLOR"])):
        variables.pop(name, None)
    process = subprocess.Popen([FIRNLINE, *arguments], env=variables, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    if answer:
        os.write(mine, f"{answer}\n".encode())
    shown = _read_all(mine)
    os.close(mine)
    return shown.replace("\r\n", "\n"), process.wait(60)


def _read_all(terminal: int) -> str:
    shown, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # the other side is closed
                break
    return shown.decode(errors="replace")


def unmoved(text: str) -> str:
    """Returns what stays on the screen: where a command took over a second, a bar was drawn and taken away again."""
    return re.sub(r"\x1b\[[0-9;?]*[A-KSTlh]", "", re.sub(r"[^\n]*(?:\r|\x1b\[2K)", "", text))


def uncoloured(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.sampled(1)
def test_a_plan_fits_the_terminal_and_breaks_no_word(lake: Lake, columns: int) -> None:
    narrow, code = on_terminal(*PLAN, columns=columns, NO_COLOR="1")
    wide, _ = on_terminal(*PLAN, columns=1_000, NO_COLOR="1")
    assert code == 0
    assert max(map(len, unmoved(narrow).splitlines())) <= columns
    assert sorted(unmoved(narrow).split()) == sorted(unmoved(wide).split())


def quietly(*arguments: str) -> None:
    """Runs a command of which nobody looks at what it says, in this process: that takes a tenth of another one."""
    assert run(list(arguments)) == 0


def grid_of(*arguments: str, columns: int) -> list[str]:
    """Returns the lines of the grid that a command shows on a terminal of a width."""
    shown = unmoved(on_terminal(*arguments, columns=columns, NO_COLOR="1")[0])
    assert max(map(len, shown.splitlines())) <= columns
    return [line for line in shown.partition("\n\nhint:")[0].splitlines() if line.startswith("  ")]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("command", ["runs", "purge"])
def test_runs_of_one_table_are_one_table_of_a_line_each(lake: Lake, command: str) -> None:
    quietly("expire", *PLAN[1:], "--yes")
    heads, row, *more = grid_of(command, columns=80)
    assert re.split(r" {2,}", heads.strip()) == [
        "run of lake.ns.events", "state", "grace ends", "snapshots", "files"
    ]  # fmt: skip
    assert re.fullmatch(r"  [0-9TZ]+-[0-9a-f]+ +committed +\d\d-\d\d \d\d:\d\d +6 +\d+, \d+\.\d [KM]iB", row)
    assert more == []
    heads, row = grid_of(command, columns=64)
    assert re.split(r" {2,}", heads.strip()) == ["run of lake.ns.events", "state", "grace ends", "files"]


@pytest.mark.full
@pytest.mark.parametrize("command", ["runs", "purge"])
def test_runs_of_several_tables_are_one_table_of_a_line_each(lake: Lake, command: str) -> None:
    lake.another(LONG)
    quietly("expire", "--all", "--retain-last", "1", "--yes", "--blast-radius", "100%")
    heads, *rows = grid_of(command, columns=80)
    assert re.split(r" {2,}", heads.strip()) == ["run", "in lake.ns", "state, grace", "files"]
    assert sorted(row.split()[1] for row in rows) == [LONG, "events"]
    heads, *rows = grid_of(command, columns=200)
    assert re.split(r" {2,}", heads.strip()) == [
        "run", "table", "state", "grace ends", "snapshots", "files", "bytes"
    ]  # fmt: skip
    assert len(rows) == 2


@pytest.mark.full
def test_the_remark_of_a_run_has_a_heading_at_any_width(lake: Lake) -> None:
    quietly(*PLAN, "--save")
    heads, row = grid_of("runs", columns=200)
    assert heads.endswith("  remark")
    assert row.endswith("  waits for `firnline commit`")
    heads, row, below = grid_of("runs", columns=80)
    assert below == "    remark: waits for `firnline commit`"


@pytest.mark.full
def test_runs_of_tables_with_long_names_are_told_one_below_the_other(lake: Lake) -> None:
    lake.another(LONG * 3)
    quietly("expire", "--all", "--retain-last", "1", "--yes", "--blast-radius", "100%")
    lines = grid_of("runs", columns=80)
    assert f"    lake.ns.{LONG * 3}" in lines


def test_what_stays_goes_or_is_refused_has_a_colour(lake: Lake) -> None:
    shown, _ = on_terminal(*PLAN)
    assert f"{GREEN}keep 2" in shown
    assert f"{YELLOW}expire 6" in shown
    refused, _ = on_terminal(*PLAN, "--blast-radius", "1%")
    assert f"{RED}a run would refuse" in refused
    failed, code = on_terminal("plan", "lake.ns.event")
    assert code == 10
    assert failed.startswith(f"{RED}error: no table lake.ns.event")


@pytest.mark.parametrize("quiet", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
@pytest.mark.sampled(1)
def test_colours_can_be_turned_off_and_say_nothing_that_words_do_not(lake: Lake, quiet: dict[str, str]) -> None:
    plain, _ = on_terminal(*PLAN, **quiet)
    assert "\x1b[" not in plain
    coloured, _ = on_terminal(*PLAN)
    assert uncoloured(coloured) == plain


def test_a_pipe_gets_neither_colours_nor_breaks(lake: Lake) -> None:
    wide, _ = on_terminal(*PLAN, columns=1_000, NO_COLOR="1")
    piped = subprocess.run([FIRNLINE, *PLAN], check=True, capture_output=True, text=True)
    assert piped.stdout == wide
    assert piped.stderr == ""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 130)])
def test_at_the_prompt_stands_one_question_with_its_numbers(lake: Lake, answer: str, code: int) -> None:
    shown, ended = on_terminal("expire", *PLAN[1:], answer=answer, NO_COLOR="1")
    assert ended == code
    question = "Remove 6 snapshots from lake.ns.events? Files stay 1d. [y/N]: "
    before, asked, after = shown.partition(question)
    assert asked, shown
    assert "hint:" not in before
    assert "nothing was changed" not in before
    assert ("nothing was changed" in after) is (answer == "n")


def test_several_tables_are_asked_for_in_one_question(lake: Lake) -> None:
    shown, _ = on_terminal("expire", "--all", "--retain-last", "1", answer="n", NO_COLOR="1")
    assert "Remove 6 snapshots from lake.ns.events? Files stay 1d. [y/N]: " in shown


@pytest.mark.full
def test_what_came_of_several_tables_is_one_line_each(lake: Lake) -> None:
    lake.another(LONG)
    shown, code = on_terminal(
        "expire", "lake.ns.e*", "--retain-last", "1", "-y", "--blast-radius", "100%", columns=80, NO_COLOR="1"
    )
    assert code == 0, shown
    heads, *rows, sums, deleted, ends = unmoved(shown).partition("\n\nhint:")[0].splitlines()[-6:]
    assert heads.split() == ["table", "expired", "files", "bytes", "state"]
    assert sorted(row.split()[0] for row in rows) == [f"lake.ns.{LONG}", "lake.ns.events"]
    assert all(row.endswith("  committed") for row in rows)
    assert sums.split()[:2] == ["2", "tables"]
    assert deleted == "deleted now: 0 files, 0 B"
    assert re.fullmatch(r"grace ends (at|from [0-9: -]+ UTC to) [0-9: -]+ UTC", ends)


@pytest.mark.full
def test_runs_that_were_declined_at_the_question_say_so(lake: Lake) -> None:
    lake.another("other")
    _, code = on_terminal("expire", "--all", "--retain-last", "1", "--blast-radius", "100%", answer="n", NO_COLOR="1")
    assert code == 130
    _, *rows = grid_of("runs", columns=200)
    assert [row.split()[2] for row in rows] == ["cancelled"] * 2
    assert all(row.endswith("  declined at the question") for row in rows)


@pytest.mark.full
def test_a_question_of_several_tables_says_nothing_of_sizes_that_nobody_asked_for(lake: Lake) -> None:
    lake.another("other")
    words = ("--all", "--retain-last", "1", "--blast-radius", "100%")
    shown, _ = on_terminal("expire", *words, answer="n", NO_COLOR="1")
    assert "Remove 8 snapshots from 2 tables" in shown
    assert "metadata: " not in shown
    assert "metadata: " in on_terminal("plan", *words, NO_COLOR="1")[0]
