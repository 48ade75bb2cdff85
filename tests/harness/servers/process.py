"""One server process: a free port on 127.0.0.1, started, waited for until it answers, stopped by its id."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HOST = "127.0.0.1"
_TRIES = 3


class Missing(RuntimeError):
    """What a server needs is not on this machine. The message says what, and how to get it."""


@dataclass(frozen=True)
class Server:
    """A running server. `settings` are what a client needs beside the address, in PyIceberg's words."""

    name: str
    url: str
    pid: int
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    """How to start a server on a port, and how to see that it answers there.

    `owner` runs it as another user, given as (user id, group id); `stop` is the signal that ends it.
    """

    name: str
    arguments: Callable[[int], Sequence[str]]
    answers: Callable[[int], bool]
    environment: Mapping[str, str] = field(default_factory=dict)
    owner: tuple[int, int] | None = None
    stop: signal.Signals = signal.SIGTERM
    patience_s: float = 180.0


def free_port() -> int:
    """Returns a port that was free a moment ago: another process may take it first, so a start is tried again."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def program(name: str, package: str, folders: Sequence[Path] = ()) -> str:
    """Returns the path of a program, looked for in `folders` first. Raises Missing, naming the system's package."""
    found = shutil.which(name, path=os.pathsep.join(map(str, folders))) or shutil.which(name)
    if found is None:
        raise Missing(f"{name} is not installed (system package {package})")
    return found


def tied(arguments: Sequence[str], stop: signal.Signals, owner: tuple[int, int] | None = None) -> list[str]:
    """Returns the command so that the kernel ends it with its parent, which may be killed, and as another user."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        if owner is not None:
            raise Missing("setpriv is not installed (system package util-linux): cannot run as another user")
        return list(arguments)
    become = [] if owner is None else [f"--reuid={owner[0]}", f"--regid={owner[1]}", "--clear-groups"]
    return [setpriv, *become, "--pdeathsig", stop.name.removeprefix("SIG"), *arguments]


@contextmanager
def running(command: Command, folder: Path) -> Iterator[tuple[int, int]]:
    """Yields (port, process id) of a server that answers; what it says goes to NAME.log in the folder.

    Raises RuntimeError with the end of that log where it does not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{command.name}.log"
    port, process = _started(command, log)
    try:
        yield port, process.pid
    finally:
        end(process, command.stop)


def end(process: subprocess.Popen[bytes], stop: signal.Signals = signal.SIGTERM) -> None:
    """Ends one process by its id: asked first, killed where it does not listen."""
    if process.poll() is None:
        process.send_signal(stop)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def _started(command: Command, log: Path) -> tuple[int, subprocess.Popen[bytes]]:
    for _ in range(_TRIES):
        port = free_port()
        process = _spawn(command, port, log)
        if _answered(command, port, process):
            return port, process
        end(process, command.stop)
    raise RuntimeError(f"{command.name} does not start:\n{log.read_text(errors='replace')[-2000:]}")


def _spawn(command: Command, port: int, log: Path) -> subprocess.Popen[bytes]:
    arguments = tied(command.arguments(port), command.stop, command.owner)
    environment = {**os.environ, **command.environment}
    with log.open("ab") as said:
        return subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment, cwd=log.parent
        )


def _answered(command: Command, port: int, process: subprocess.Popen[bytes]) -> bool:
    """Returns whether this very process answers: another one on its port makes it exit, which is seen here."""
    deadline = time.monotonic() + command.patience_s
    while process.poll() is None and time.monotonic() < deadline:
        if command.answers(port):
            return process.poll() is None
        time.sleep(0.05)
    return False
