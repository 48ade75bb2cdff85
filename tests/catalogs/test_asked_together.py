"""Catalogs are asked side by side: three that are away cost the time of one, and are told in their order."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import yaml

from firnline import answering, side_by_side
from firnline.cli.main import run
from firnline.errors import FirnlineError, UsageError
from firnline.side_by_side import all_answers, answers
from tests.catalogs.test_silent_servers import talking

NAMES = ("first", "second", "third")
REFUSED = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
LONG_S = 20.0


class Meeting:
    """Servers of which none answers before all were asked; `alone` is whether one waited in vain."""

    def __init__(self) -> None:
        self._together, self._met = threading.Barrier(len(NAMES)), threading.Event()
        self.alone = False

    def talk(self) -> Callable[[socket.socket], None]:
        begun = threading.Event()

        def answer(client: socket.socket) -> None:
            with suppress(OSError):
                client.recv(65536)
                if not begun.is_set():
                    begun.set()
                    self._wait()
                client.sendall(REFUSED)
                client.close()

        return answer

    def _wait(self) -> None:
        try:
            self._together.wait(LONG_S)
        except threading.BrokenBarrierError:
            self.alone = True


@pytest.fixture
def meeting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Meeting]:
    monkeypatch.setattr(answering, "_asked", {})
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    meeting = Meeting()
    with ExitStack() as servers:
        places = [servers.enter_context(talking(meeting.talk())) for _ in NAMES]
        catalogs = {name: {"type": "rest", "uri": f"http://{at}"} for name, at in zip(NAMES, places, strict=True)}
        (tmp_path / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": catalogs}, sort_keys=False))
        yield meeting


@pytest.mark.parametrize(
    "command",
    [
        "tables", "plan --all", "expire --all --yes", "orphans --all", "check --all", "history --all", "runs", "purge",
        "resume", "doctor", "pointers sync", "pointers watch --looks 1", "plan first.* second.* third.*",
        "plan first.a.b second.a.b third.a.b", "orphans ./nothing",
    ],
)  # fmt: skip
def test_no_catalog_waits_for_another(meeting: Meeting, capsys: pytest.CaptureFixture[str], command: str) -> None:
    run(command.split())
    assert not meeting.alone
    shown = capsys.readouterr()
    said = next((each for each in shown if all(name in each for name in NAMES)), "")
    if command != "orphans ./nothing":
        assert sorted(NAMES, key=said.index) == list(NAMES)


def test_answers_come_in_the_order_of_the_questions() -> None:
    later = threading.Event()

    def ask(number: int) -> int:
        if number == 0:
            assert later.wait(LONG_S)
        later.set()
        if number == 1:
            raise UsageError("not this one")
        return number

    first, second, third = answers([0, 1, 2], ask)
    assert (first, str(second), third) == (0, "not this one", 2)
    later.clear()
    with pytest.raises(FirnlineError, match="not this one"):
        all_answers([0, 1, 2], ask)
    assert answers([], ask) == []


def test_a_mistake_of_ours_is_no_answer() -> None:
    with pytest.raises(ZeroDivisionError):
        answers([1, 0], lambda each: 1 // each)


@pytest.mark.parametrize("there_are", [0, 1, 2])
def test_where_the_system_has_no_more_threads_the_others_ask(there_are: int, monkeypatch: pytest.MonkeyPatch) -> None:
    left = [True] * there_are

    class Scarce(threading.Thread):
        def start(self) -> None:
            if not left:
                raise RuntimeError("can't start new thread")
            left.pop()
            super().start()

    monkeypatch.setattr(side_by_side, "Thread", Scarce)
    assert answers([1, 2, 3, 4], lambda each: each * 10) == [10, 20, 30, 40]
