"""What an executor says of its Python.

It may have no firnline: so this module travels by value, and imports nothing but what every Python has.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import sysconfig
from collections.abc import Callable, Sequence
from typing import TypedDict


class Seen(TypedDict):
    """What Python it is: its platform, which modules cannot be imported, and the digest of its firnline, if any."""

    platform: str
    missing: list[str]
    firnline: str | None


def looker(names: Sequence[str]) -> Callable[[int], str]:
    """Returns a function for executors, which says as JSON what is installed there."""
    return lambda _: json.dumps(seen(names))


def seen(names: Sequence[str]) -> Seen:
    """Returns what is here; of the names those that are not."""
    found = importlib.util.find_spec("firnline")
    places = found.submodule_search_locations if found else None
    return {
        "platform": f"{sysconfig.get_platform()} {platform.libc_ver()[0]}",
        "missing": [name for name in names if importlib.util.find_spec(name) is None],
        "firnline": digest(places[0]) if places else None,
    }


def digest(package: str) -> str:
    """Returns what identifies the code in a folder."""
    known = hashlib.sha256()
    for folder, folders, names in os.walk(package):
        folders[:] = sorted(each for each in folders if each not in ("__pycache__", "_packed"))
        for name in sorted(each for each in names if each.endswith(".py")):
            with open(os.path.join(folder, name), "rb") as code:
                known.update(os.path.relpath(code.name, package).encode() + b"\0" + code.read() + b"\0")
    return known.hexdigest()
