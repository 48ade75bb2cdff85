"""Ctrl-C with several tables: one line says what was stopped and how far it came, and what goes on if there is any."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from firnline.app.many import on_each
from firnline.app.places import now_ms
from firnline.app.runs import Runs
from firnline.cli.main import run
from firnline.formats.iceberg.table import IcebergFormat
from firnline.model.times import DAY_MS
from firnline.ports.progress import Silent
from tests.cli.test_flags import date

Lake = Any
Capture = pytest.CaptureFixture[str]
TABLES = 14
GOES_ON = "`firnline resume` goes on with what was begun"
KEEP = ("--retain-last", "1", "--older-than", "1d")


@pytest.fixture
def many(lake: Lake) -> Iterator[Lake]:
    for number in range(TABLES - 1):
        lake.another(f"t{number:02}")
    listening = signal.signal(signal.SIGINT, signal.default_int_handler)  # as a process of its own has it
    yield lake
    signal.signal(signal.SIGINT, listening)


def pressing(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, after: int) -> None:
    """Has Ctrl-C come once a method was called so often."""
    plain: Callable[..., Any] = getattr(owner, name)
    calls = []

    def pressed(*said: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == after:
            os.kill(os.getpid(), signal.SIGINT)
        return plain(*said, **options)

    monkeypatch.setattr(owner, name, pressed)


def stopped(capsys: Capture, *arguments: str) -> tuple[str, list[str]]:
    capsys.readouterr()
    assert run(list(arguments)) == 130
    shown = capsys.readouterr()
    return shown.out, [line for line in shown.err.splitlines() if line]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("command", ["plan", "check", "history", "runs", "orphans", "expire --dry-run", "expire --yes"])
def test_what_only_looked_says_how_far_it_came_and_of_nothing_to_go_on(
    many: Lake, capsys: Capture, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    pressing(monkeypatch, IcebergFormat, "load", 5)
    out, (told,) = stopped(capsys, *command.split(), "--all", *(KEEP if "expire" in command else ()))
    name = command.split(maxsplit=1)[0]
    assert told.startswith(f"interrupted: {name} was stopped, ")
    assert told.endswith(f" of {TABLES} tables are done")
    assert out == ""


def test_plans_that_were_called_off_are_nothing_to_go_on_with(
    many: Lake, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pressing(monkeypatch, Runs, "saved", 3)
    _, (told,) = stopped(capsys, "expire", "--all", "--yes", *KEEP)
    assert told.startswith("interrupted: expire was stopped, ")
    assert "resume" not in told
    run(["resume", "--all"])
    assert "nothing to resume" in capsys.readouterr().out


def test_a_stop_among_runs_is_told_once_with_what_goes_on(
    many: Lake, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pressing(monkeypatch, Runs, "advance", 2)
    out, told = stopped(capsys, "expire", "--all", "--yes", "--at-once", "1", *KEEP)
    assert told == [
        "stopping at the next batch; once more stops at once",
        f"interrupted: expire was stopped, 2 of {TABLES} tables are done; {GOES_ON}",
    ]
    assert f"and {TABLES - 2} tables more" in out
    assert "stopped before" not in out
    pressing(monkeypatch, Runs, "resume", 3)
    out, told = stopped(capsys, "resume", "--all", "--at-once", "1", "--json")
    listed = json.loads("\n".join(told[1:]))
    assert listed["error"]["message"] == f"interrupted: resume was stopped, 3 of {TABLES} tables are done"
    assert len(told) == 2


def test_a_stop_among_searches_is_no_failure_and_is_told_once(
    many: Lake, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("events", *(f"t{number:02}" for number in range(TABLES - 1))):
        lost = Path(f"ns/{name}/data/lost.parquet")
        lost.parent.mkdir(parents=True, exist_ok=True)
        lost.write_bytes(b"x")
        date(lost, now_ms() - 30 * DAY_MS)
    pressing(monkeypatch, Runs, "advance", 2)
    out, told = stopped(capsys, "orphans", "--all", "--yes", "--grace", "0s", "--at-once", "1")
    assert told == [
        "stopping at the next batch; once more stops at once",
        f"interrupted: orphans was stopped, 1 of {TABLES} tables are done; {GOES_ON}",
    ]
    rows = [line.split() for line in out.splitlines() if line.startswith("  ")]
    assert [row[-1] for row in rows[1:3]] == ["stopped", "done"]
    assert rows[3] == ["and", str(TABLES - 2), "tables", "more", "the", "stop", "came", "before", "them"]
    assert "failed" not in out
    assert "stopped before" not in out


def test_what_a_thread_began_as_ctrl_c_came_is_over_before_anything_is_called_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pool notes a thread only after it began: one that Ctrl-C cut off from that is not waited for by the pool."""
    begun, ended, start = threading.Event(), list[str](), threading.Thread.start

    def act(item: str) -> None:
        begun.set()
        time.sleep(0.2)
        ended.append(item)

    def started(thread: threading.Thread) -> None:
        start(thread)
        begun.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", started)
    with pytest.raises(KeyboardInterrupt):
        list(on_each(["one", "two"], act, 2, lambda: False, Silent()))
    assert ended == ["one"]
