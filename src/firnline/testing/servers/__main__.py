"""`python -m firnline.testing.servers`: servers for a command, or until they are stopped.

run [NAME …] -- COMMAND   starts the servers, runs the command with them in its environment, stops them
up [NAME …]               starts them, prints how to reach them, stays until Ctrl-C or `down`
down                      stops what `up` started in this folder
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

from firnline.testing.servers.s3 import environment
from firnline.testing.servers.session import NAMES, Servers, servers

# Whoever is up holds a lock on it: its process id is only used while that lock is held, so never an old one.
_UP = Path(".services")


def run(names: Sequence[str], command: Sequence[str]) -> int:
    """Returns the command's exit code. What is missing on this machine is said, and left out."""
    with _started(names) as running:
        return subprocess.run(command, env={**os.environ, **running.handed_down()}, check=False).returncode


def up(names: Sequence[str]) -> int:
    """Starts the servers and stays until it is told to stop."""
    with _UP.open("a+") as held:
        if not _lock(held.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB):
            print("The services are up already; `make services-stop` ends them.", file=sys.stderr)
            return 1
        held.truncate(0)
        print(os.getpid(), file=held, flush=True)
        with _started(names) as running, suppress(KeyboardInterrupt):
            _tell(running)
            signal.pause()
    return 0


def down() -> int:
    """Stops what `up` started in this folder and waits for its end; nothing to stop is well too."""
    with _UP.open("a+") as held:
        if not _lock(held.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB):
            held.seek(0)
            os.kill(int(held.read()), signal.SIGTERM)
            _lock(held.fileno(), fcntl.LOCK_EX)
    _UP.unlink()
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


def _tell(running: Servers) -> None:
    """Prints where each server is, then lines for a shell's environment."""
    found = {name: each for name, each in running.described().items() if not isinstance(each, str)}
    for name, each in found.items():
        print(f"# {name:9} {each.url}")
        for key, value in each.settings.items():
            print(f"#     {key}: {value}")
    s3 = found.get("moto") or found.get("versitygw")
    for variable, value in {**(environment(s3) if s3 else {}), **running.handed_down()}.items():
        print(f"export {variable}={shlex.quote(value)}")
    print("# Ctrl-C or `make services-stop` ends them.", flush=True)


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
