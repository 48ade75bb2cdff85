"""Which process holds a lease, told so exactly that another on the same machine can see when it is gone."""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path


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
            return home == _home() and started != _started(int(pid)) and not _is_hidden(int(pid))
        case _:
            return False


def _is_hidden(pid: int) -> bool:
    """Tells whether a process of that number lives although /proc does not show it, as some systems are set up."""
    if _started(pid):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _home() -> str:
    """Returns this boot and this namespace of process ids; '' where the system does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Returns when a process was started, in ticks since the boot; '' where there is no such process."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return after_name[19]
