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
import zipfile
from collections.abc import Callable, Iterator, Sequence
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
    """Returns what identifies the code of a package."""
    known = hashlib.sha256()
    for name, code in sources(package):
        known.update(name.encode() + b"\0" + code + b"\0")
    return known.hexdigest()


def sources(package: str) -> list[tuple[str, bytes]]:
    """Returns the modules of a package by their names below it, sorted; what came packed with it is not its code."""
    every = _in_folder(package) if os.path.isdir(package) else _in_zip(package)
    return sorted((name, code) for name, code in every if not _APART.intersection(name.split("/")))


_APART = frozenset({"__pycache__", "_packed"})


def _in_folder(package: str) -> Iterator[tuple[str, bytes]]:
    for folder, folders, names in os.walk(package):
        folders[:] = [each for each in folders if each not in _APART]
        for name in names:
            if name.endswith(".py"):
                with open(os.path.join(folder, name), "rb") as code:
                    yield os.path.relpath(code.name, package).replace(os.sep, "/"), code.read()


def _in_zip(package: str) -> Iterator[tuple[str, bytes]]:
    """Yields what a zip holds at the end of this path: Spark's py-files are one; Python imports from it as it is."""
    place, inside = os.path.split(package)
    if not zipfile.is_zipfile(place):
        return
    with zipfile.ZipFile(place) as archive:
        for name in archive.namelist():
            if name.startswith(f"{inside}/") and name.endswith(".py"):
                yield name[len(inside) + 1 :], archive.read(name)
