"""Entries as files of this machine, each for its time, the least used of which go when there are too many."""

from __future__ import annotations

import os
import re
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

LARGEST_ENTRY = 64 << 20
LIMIT_BYTES = 2 << 30
_DAY_S = 86_400
_UNUSED_S = 30 * _DAY_S
_LEAVE_SHARE, _PRUNE_SHARE = 0.8, 0.05
_PRUNED = "pruned"
_INNER, _ENTRY, _UNFINISHED = (re.compile(each) for each in ("[0-9a-f]{2}", "[0-9a-f]{64}", r"\.[0-9a-f]{32}"))
_ENDS = struct.Struct(">Q")
"""At the start of an entry: when its time is over, in seconds. No seal is over it: what it keeps alive too long is as
true as it was.
"""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass
class DiskCache:
    """A folder of entries. Writes are atomic by rename; what a crash leaves half written has no seal that fits."""

    folder: str
    limit_bytes: int = LIMIT_BYTES

    def __post_init__(self) -> None:
        self._written = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "limit_bytes": self.limit_bytes, "_written": 0}

    def get(self, key: str) -> bytes | None:
        try:
            return _current(_read(self._path(key)))
        except OSError:
            return None

    def put(self, key: str, data: bytes, ttl_s: int) -> None:
        """Remembers the bytes until their time is over, as long as they are asked for and there is room."""
        if len(data) > min(LARGEST_ENTRY, self.limit_bytes):
            return
        with suppress(OSError):
            _write(self._path(key), _ENDS.pack(int(time.time()) + ttl_s) + data)
            self._written += len(data)
            if self._written > self.limit_bytes * _PRUNE_SHARE or self._is_prune_due():
                self.prune()

    def prune(self) -> None:
        """Removes what was not used for a month; and what was not used for longest, until there is some room again."""
        self._written = 0
        Path(self.folder, _PRUNED).touch()
        entries = sorted(_entries(self.folder))
        excess = sum(size for _, size, _ in entries) - self.limit_bytes
        if excess > 0:
            excess += int(self.limit_bytes * (1 - _LEAVE_SHARE))
        forgotten = time.time() - _UNUSED_S
        for used, size, path in entries:
            if excess <= 0 and used > forgotten:
                return
            with suppress(OSError):
                os.unlink(path)
            excess -= size

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, key[:2], key)

    def _is_prune_due(self) -> bool:
        """Tells whether nobody looked for a day: many short runs together fill a disk too."""
        try:
            return time.time() - os.stat(os.path.join(self.folder, _PRUNED)).st_mtime > _DAY_S
        except FileNotFoundError:
            return True


def _read(path: str) -> bytes | None:
    """Returns the file; None where it is no plain file (a pipe would block) or longer than any entry."""
    handle = os.open(path, _FLAGS)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST_ENTRY + _ENDS.size:
            return None
        data = os.read(handle, found.st_size)  # a part of it, should that ever be all, has no seal that fits
    finally:
        os.close(handle)
    if time.time() - found.st_mtime > _DAY_S:
        with suppress(OSError):
            os.utime(path)
    return data


def _current(entry: bytes | None) -> bytes | None:
    """Returns what was put; None where its time is over, or where there is no time: a crash left that."""
    if entry is None or len(entry) < _ENDS.size or _ENDS.unpack_from(entry)[0] <= time.time():
        return None
    return entry[_ENDS.size :]


def _write(path: str, data: bytes) -> None:
    folder = os.path.dirname(path)
    unfinished = os.path.join(folder, f".{uuid4().hex}")
    try:
        handle = _created(unfinished)
    except FileNotFoundError:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle = _created(unfinished)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.replace(unfinished, path)
    except OSError:
        os.unlink(unfinished)
        raise


def _created(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _entries(folder: str) -> Iterator[tuple[float, int, str]]:
    """Yields when each entry was used last, its size and its path; also of entries that a crash left unfinished.

    What has any other name was not written here, and is nobody's to remove.
    """
    for inner in os.scandir(folder):
        if inner.is_dir(follow_symlinks=False) and _INNER.fullmatch(inner.name):
            for entry in os.scandir(inner.path):
                if _UNFINISHED.fullmatch(entry.name) or (_ENTRY.fullmatch(entry.name) and entry.name[:2] == inner.name):
                    with suppress(OSError):
                        found = entry.stat(follow_symlinks=False)
                        yield found.st_mtime, found.st_size, entry.path
