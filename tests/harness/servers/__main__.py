"""`python -m harness.servers`: servers for a command, or until they are stopped.

run [NAME …] -- COMMAND   starts the servers, runs the command with them in its environment, stops them
up [NAME …]               starts them, prints how to reach them, stays until Ctrl-C or `down`
down                      stops what `up` started in this folder
build                     builds the S3 server that has to be built, once
"""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from harness.servers.s3 import environment
from harness.servers.session import NAMES, Servers, servers
from harness.servers.versitygw import build, building_ahead

# Whoever is up holds a lock on it: its process id is only used while that lock is held, so never an old one.
_UP = Path(".services")


def run(names: Sequence[str], command: Sequence[str]) -> int:
    """Returns the command's exit code. What is missing on this machine is said, and left out."""
    with building_ahead(), _started(names) as running:
        # Ctrl-C is for the command, which says what it did so far; the servers end after it.
        signal.signal(signal.SIGINT, lambda *_: None)
        return subprocess.run(command, env={**os.environ, **running.handed_down()}, check=False).returncode


def up(names: Sequence[str]) -> int:
    """Starts the servers and stays until it is told to stop. Where they are up already, says where."""
    with _UP.open("a+") as held:
        if not _lock(held.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB):
            held.seek(0)
            print(held.read().partition("\n")[2], end="")
            return 0
        held.truncate(0)
        print(os.getpid(), file=held, flush=True)
        with _started(names) as running, suppress(KeyboardInterrupt):
            print(_told(running), file=held, flush=True)
            print(_told(running), flush=True)
            signal.pause()
        _UP.unlink(missing_ok=True)
    return 0


def down() -> int:
    """Stops what `up` started in this folder and waits for its end; nothing to stop is well too."""
    with suppress(FileNotFoundError), _UP.open() as held:
        if not _lock(held.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB):
            os.kill(int(held.readline()), signal.SIGTERM)
            _lock(held.fileno(), fcntl.LOCK_EX)
    return 0


def main(arguments: Sequence[str]) -> int:
    """Returns an exit code."""
    signal.signal(signal.SIGTERM, _leave)
    match arguments:
        case ["run", *rest] if "--" in rest:
            cut = rest.index("--")
            return run(rest[:cut], rest[cut + 1 :])
        case ["up", *names]:
            return up(names)
        case ["down"]:
            return down()
        case ["build"]:
            print(build())
            return 0
    print(__doc__, file=sys.stderr)
    return 2


@contextmanager
def _started(names: Sequence[str]) -> Iterator[Servers]:
    with tempfile.TemporaryDirectory(prefix="firnline-servers-") as folder, servers(Path(folder)) as running:
        running.start(names or NAMES)
        for name, found in running.described().items():
            if isinstance(found, str):
                print(f"services: no {name} here: {found}", file=sys.stderr)
        yield running


def _told(running: Servers) -> str:
    """Returns where each server is, then lines for a shell's environment."""
    found = {name: each for name, each in running.described().items() if not isinstance(each, str)}
    lines: list[str] = []
    for name, each in found.items():
        lines += [f"# {name:9} {each.url}", *(f"#     {key}: {value}" for key, value in each.settings.items())]
    s3 = found.get("moto") or found.get("versitygw")
    exported = {**(environment(s3) if s3 else {}), **running.handed_down()}
    lines += [f"export {variable}={shlex.quote(value)}" for variable, value in exported.items()]
    return "\n".join([*lines, "# Ctrl-C or `make services-stop` ends them."])


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind)
        return True
    except BlockingIOError:
        return False


def _leave(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
