"""`pytest -p harness.pure`: the tests of `make unit` start no server and no JVM, and reach none.

A test fails that connects, takes a port, or starts any program but Python and what a checkout is made with, whatever
handles errors on the way and in whichever thread. One that asks for a server or a session is not even taken.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from harness.lanes import UNIT

_PROGRAMS = re.compile(r"python[0-9.]*|git|make|sh|bash")
_LANE = "`make unit` has no server and no JVM"
_refused: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    os.environ[UNIT] = "1"
    sys.addaudithook(_refuse)


@pytest.hookimpl(trylast=True)  # after -m and -k
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Raises UsageError where a test asks for a server or a Spark session: it belongs to another lane."""
    others = [item.nodeid for item in items if _asks(item)]
    if others:
        raise pytest.UsageError(f"{_LANE}: {', '.join(others)}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fails a test that was refused something and went on."""
    _refused.clear()
    yield
    if _refused:
        pytest.fail(_refused[0])


def _asks(item: pytest.Item) -> bool:
    return "server" in getattr(item, "fixturenames", ()) or item.get_closest_marker("spark") is not None


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    match event:
        case "socket.connect" | "socket.bind" if arguments[0].family in (socket.AF_INET, socket.AF_INET6):
            _fail(f"{event} {arguments[1]}")
        case "subprocess.Popen" if not _PROGRAMS.fullmatch(_program(*arguments[:2])):
            _fail(f"{_program(*arguments[:2])} was to be started")


def _fail(what: str) -> None:
    _refused.append(f"{_LANE}: {what}")
    pytest.fail(_refused[-1])


def _program(executable: Any, command: Any) -> str:
    first = executable or (command if isinstance(command, str | bytes | os.PathLike) else command[0])
    return os.path.basename(os.fsdecode(first))
