"""Which process holds a lease, told so exactly that another on the same machine can see when it is gone; and the one
clock that all processes of a machine share and nobody sets.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from pathlib import Path

_ENDED = ("Z", "X")
"""States of what is dead: waiting to be asked how it ended, or on its way out of the list."""


def this_process() -> str:
    """Returns a name for this process that no other process ever has."""
    return f"{socket.gethostname()}:{os.getpid()}:{_home()}:{_started(os.getpid())}:{secrets.token_hex(4)}"


def is_certainly_gone(owner: str) -> bool:
    """Tells whether the named process ran on this very machine since it was booted, and runs no more.

    Host names and process ids are not enough: two containers may have the same of both. The boot, the namespace of
    process ids and the time of the start are compared too; where any of them cannot be read, nothing is certain.
    """
    match owner.rsplit(":", 4):
        case [_, pid, home, started, _] if pid.isdigit() and home and started:
            return home == _home() and not _may_live(int(pid), started)
        case _:
            return False


def _may_live(pid: int, started: str) -> bool:
    shown = _started(pid)
    return shown == started and not _has_ended(pid) if shown else _is_hidden(pid)


def _has_ended(pid: int) -> bool:
    """Tells whether nothing of a process runs any more, and only its parent has not asked how it ended."""
    try:
        return all(_fields(task / "stat")[0] in _ENDED for task in Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return False


def _is_hidden(pid: int) -> bool:
    """Tells whether a process of that number lives although /proc does not show it, as some systems are set up."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def boot() -> str:
    """Returns what names this start of the machine, and whose clock of it is seen here; '' where nothing tells."""
    try:
        clock = Path("/proc/self/ns/time").stat().st_ino  # containers may be given a clock that was moved
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}/{clock}"
    except OSError:
        return ""


def boot_ms() -> int:
    """Returns the time since the machine was started. It goes on while the machine is suspended."""
    steady = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(steady) // 1_000_000


def _home() -> str:
    """Returns this boot and this namespace of process ids; '' where the system does not tell."""
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{started}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Returns when a process was started, in ticks since the boot; '' where there is no such process."""
    try:
        return _fields(Path(f"/proc/{pid}/stat"))[19]
    except OSError:
        return ""


def _fields(stat: Path) -> list[str]:
    """Returns what /proc says of a process after its name, which may hold anything; its state comes first."""
    return stat.read_text().rpartition(")")[2].split()
