"""However a command ends, its bars are gone from the screen, and what it says last stands on lines of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from typing import Any

import pytest

Lake = Any
SLOW = """
import sys, threading, time

from firnline.cli.main import main
from firnline.errors import StoreError
from firnline.stores.objects import ObjectStores

read, one_by_one, seen = ObjectStores.get, threading.Lock(), []

def slowly(self, key):
    if key.endswith(".avro"):
        with one_by_one:
            time.sleep(0.06)
        seen.append(key)
        if sys.argv[1] == "bug" and len(seen) == 40:
            raise ValueError("a mistake of our own")
    return read(self, key)

def ends(self):
    raise StoreError("the store went away", hint="ask again")

ObjectStores.get = slowly
if sys.argv[1] == "error":
    from firnline.cli.terminal.progress import TerminalProgress
    step = TerminalProgress.step
    TerminalProgress.step = lambda self, *said: ends(self) if self._drawn and len(seen) > 40 else step(self, *said)
main(sys.argv[2:])
"""
"""A command whose store is slow. A mistake of our own is logged while bars stand; an error ends the command."""
BAR = re.compile("[█░]|tables: ")


def screen(shown: str, columns: int) -> list[str]:
    """Returns the lines that a terminal of a width has after all that was written to it."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[\d*A|\x1b\[J|\x1b\[[\d;]*m|\r|\n|[^\x1b]", shown):
        if part == "\n":
            row += 1
        elif part == "\r":
            column = 0
        elif part.endswith("A") and len(part) > 1:
            row -= int(part[2:-1] or 1)
        elif part == "\x1b[J":
            lines[row:] = [lines[row][:column]]
        elif len(part) == 1:
            row, column = (row + 1, 0) if column == columns else (row, column)
            lines += [""] * (row + 1 - len(lines))
            lines[row] = f"{lines[row][:column]:<{column}}{part}{lines[row][column + 1 :]}"
            column += 1
        lines += [""] * (row + 1 - len(lines))
    return [line.rstrip() for line in lines]


def on_screen(how: str, columns: int, *arguments: str) -> tuple[list[str], int]:
    """Returns what is left on a terminal of a width, and the exit code. Ctrl-C is typed once a bar stands, if asked."""
    said = {name: each for name, each in os.environ.items() if name not in ("COLUMNS", "LINES")}
    said |= {"TERM": "xterm", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8", "FIRNLINE_CACHE": "off"}
    process, terminal = pty.fork()
    if process == 0:
        os.execve(sys.executable, [sys.executable, "-c", SLOW, how, *arguments], said)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    shown, typed, deadline = b"", False, time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            shown += os.read(terminal, 65536)
        except OSError:  # the other side is closed
            break
        if how == "interrupt" and not typed and BAR.search(shown.decode(errors="replace")):
            typed = bool(os.write(terminal, b"\x03"))
    os.close(terminal)
    text = shown.decode()
    assert BAR.search(text), f"no bar was drawn: {text}"
    return screen(text, columns), os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@pytest.fixture
def slow_lake(lake: Lake) -> Lake:
    """Five names of one table: each takes a second to look at."""
    location = lake.publish()
    for number in range(4):
        lake.register(f"again{number}", location)
    return lake


CHECK = ("check", "lake.ns.*", "--at-once", "1")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("columns", [100, 25])
def test_ctrl_c_leaves_no_bar_and_a_line_of_its_own(slow_lake: Lake, columns: int) -> None:
    """The terminal writes ^C behind the bar; in a narrow one it must not run over into the next line."""
    left, code = on_screen("interrupt", columns, *CHECK)
    assert code == 130
    told = "".join(line for line in left if line).replace(" ", "")
    assert re.fullmatch(r"interrupted:checkwasstopped,[0-4]of5tablesaredone", told), left


@pytest.mark.full
def test_an_error_leaves_no_bar_and_a_line_of_its_own(slow_lake: Lake) -> None:
    left, code = on_screen("error", 100, *CHECK)
    assert code == 1
    assert [line for line in left if line] == ["error: the store went away", "hint: ask again"]


@pytest.mark.full
def test_what_is_logged_while_a_bar_stands_begins_a_line(slow_lake: Lake) -> None:
    left, code = on_screen("bug", 100, *CHECK)
    assert code == 1
    assert "Traceback (most recent call last):" in left
    assert [line for line in left if BAR.search(line)] == []
    assert left[0] in {f"lake.ns.{name}" for name in ("events", "again0", "again1", "again2", "again3")}
