"""The mounts of this machine: which folder of which device is where."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MOUNTS = "/proc/self/mountinfo"
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """A folder of a device, and where it is mounted."""

    device: str
    folder: str
    point: str


def mounts_now() -> tuple[Mount, ...]:
    """Returns every mount, innermost first, of several at one point the topmost one; none on other systems."""
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as lines:
            found = [_mount(line) for line in lines][::-1]
    except OSError:
        return ()
    return tuple(sorted(found, key=lambda each: -len(each.point)))


def is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _mount(line: str) -> Mount:
    _, _, device, folder, point, *_ = line.split(" ")
    return Mount(device, *(_OCTAL.sub(lambda found: chr(int(found[1], 8)), each) for each in (folder, point)))
