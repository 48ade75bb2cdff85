"""Splitting a full location into where it lives and what it is called, without changing one character of
the name.

Iceberg writes URL-encoded partition values into file names, so `a%20b` is the literal name of an object and
nothing here decodes it. This differs from `model.locations`, which merges spellings in order to compare
them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from firnline.errors import PermanentStoreError
from firnline.model.locations import parse_location

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:(?://([^/]*))?(.*)", re.DOTALL)
_NO_NAMES = ("", ".", "..")


class Key(NamedTuple):
    """A location taken apart.

    `text` is the caller's own spelling, `path` the literal rest with its first slash.
    """

    text: str
    scheme: str
    authority: str
    path: str

    @property
    def home(self) -> tuple[str, str]:
        """Returns what one opened store serves: scheme and bucket."""
        return self.scheme, self.authority


def object_key(text: str) -> Key:
    """Returns the key of one object. Raises PermanentStoreError for a name that no object can have."""
    folder, _, name = text.rpartition("/")
    home = _home(folder) if name.isprintable() and name not in _NO_NAMES else None
    return Key(text, home.scheme, home.authority, f"{home.path}/{name}") if home else _taken_apart(text)


@lru_cache(maxsize=4_096)
def _home(folder: str) -> Key | None:
    """Returns the key of a folder, which many objects share; None where what follows it may read differently."""
    try:
        key = folder_key(folder)
    except PermanentStoreError:
        return None
    return key if (key.authority or key.path) and not folder.endswith("/") else None


def _taken_apart(text: str) -> Key:
    key = folder_key(text)
    if not key.path or key.path.endswith("/"):
        raise PermanentStoreError(f"{text!r} names a folder, not an object")
    return key


def folder_key(text: str) -> Key:
    """Returns the key of a folder.

    Relative paths and the segments `.` and `..` are refused: they give one object several names, and a file
    that is needed under one name would look unneeded under another.
    """
    scheme = parse_location(text).scheme
    match = _URI.fullmatch(text)
    authority, path = (match[1] or "", match[2]) if match else ("", text)
    if scheme == "file" and authority not in ("", "localhost"):
        raise PermanentStoreError(f"{text!r} is a file on the host {authority!r}", "only local files can be opened")
    if not path.startswith("/") and (path or scheme == "file"):
        raise PermanentStoreError(f"{text!r} is a relative location", "give the full path, from the root")
    if not {".", ".."}.isdisjoint(path.split("/")) or "\0" in path:
        raise PermanentStoreError(f"{text!r} is not a plain path", "write it without '.' and '..'")
    return Key(text, scheme, "" if scheme == "file" else authority, path)


def object_name(key: Key) -> str:
    """Returns the object's name in its bucket. Raises PermanentStoreError for a doubled slash outside local files."""
    if "//" in key.path and key.scheme != "file":
        raise PermanentStoreError(f"{key.text!r} has a doubled slash, which cannot be named in {key.scheme}://")
    return key.path.removeprefix("/")
