"""Entries as files of this machine, each for its time, the least used of which go when there are too many.

A shelf is a folder of packs. What a manifest names is a few hundred bytes, which cost more to write as a file of their
own than that manifest to open: what is put together is one file, and many small ones of a shelf become one.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

import numpy as np

from firnline.caches.packs import LARGEST_ENTRY, PackEntry, PackRows, entries_of, opened, packed, rows_in, short

LIMIT_BYTES = 2 << 30
_DAY_S = 86_400
_UNUSED_S = 30 * _DAY_S
_LEAVE_SHARE, _PRUNE_SHARE = 0.8, 0.05
_PRUNED = "pruned"
_INNER, _SHELF = re.compile("[0-9a-f]{2}"), re.compile("[0-9a-f]{32}")
_PACK, _UNFINISHED = re.compile(r"[0-9a-f]{48}\.pack"), re.compile(r"\.[0-9a-f]{32}")
_MOST_SMALL, _SMALL_BYTES = 16, 4 << 20
"""So many packs of a shelf, none of them longer, become one."""
_MOST_KNOWN, _MOST_KNOWN_ROWS = 1_024, 8 << 20
_TIME_DIGITS = 16
_LAST_TIME = 16**_TIME_DIGITS - 1


@dataclass
class DiskCache:
    """A folder of packs. Each is written whole, by rename; what a crash leaves half written is none."""

    folder: str
    limit_bytes: int = LIMIT_BYTES

    def __post_init__(self) -> None:
        self._written = 0
        self._known: dict[str, PackRows] = {}
        self._noting = Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "limit_bytes": self.limit_bytes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    def get(self, shelf: str, names: Sequence[str]) -> list[bytes | None]:
        found: list[bytes | None] = [None] * len(names)
        wanted = np.array([short(name) for name in names], dtype=np.uint64)
        due = np.arange(len(names))
        for path in self._packs(shelf):
            if not len(due):
                break
            with suppress(OSError):
                due = self._take(path, wanted, due, found)
        return found

    def put(self, shelf: str, entries: Sequence[tuple[str, bytes]], ttl_s: int) -> None:
        """Remembers the entries until their time is over, as long as their shelf is asked for and there is room."""
        over_s, most = int(time.time()) + ttl_s, min(LARGEST_ENTRY, self.limit_bytes)
        fit = {short(name): PackEntry(short(name), over_s, data) for name, data in entries if len(data) <= most}
        if not fit:
            return
        with suppress(OSError):
            packs, pack = self._packs(shelf), packed(fit.values())
            self._written += _write(self._shelf(shelf), _time_after(packs), pack)
            if len(fit) == 1 and len(pack) >= _SMALL_BYTES:
                _forget(packs, next(iter(fit)))
            if len(packs) + 1 >= _MOST_SMALL:
                self._merge(shelf)
            if self._written > self.limit_bytes * _PRUNE_SHARE or self._is_prune_due():
                self.prune()

    def prune(self) -> None:
        """Removes what was not used for a month; and what was not used for longest, until there is some room again."""
        self._written = 0
        Path(self.folder, _PRUNED).touch()
        packs = sorted(_files(self.folder))
        excess = sum(size for _, size, _ in packs) - self.limit_bytes
        if excess > 0:
            excess += int(self.limit_bytes * (1 - _LEAVE_SHARE))
        forgotten = time.time() - _UNUSED_S
        for used, size, path in packs:
            if excess <= 0 and used > forgotten:
                return
            _remove(path)
            excess -= size

    def _shelf(self, shelf: str) -> str:
        return os.path.join(self.folder, shelf[:2], shelf)

    def _packs(self, shelf: str) -> list[str]:
        """Returns the packs of a shelf, newest first: what was put last under a name is what counts."""
        folder = self._shelf(shelf)
        try:
            names = sorted(filter(_PACK.fullmatch, os.listdir(folder)), reverse=True)
        except OSError:
            return []
        return [os.path.join(folder, name) for name in names]

    def _take(
        self, path: str, wanted: np.ndarray[Any, Any], due: np.ndarray[Any, Any], found: list[bytes | None]
    ) -> np.ndarray[Any, Any]:
        """Fills in those that are due and lie in this pack. Returns the numbers of the others."""
        now_s = time.time()
        known = self._known.get(path)
        if known is not None and not (known.rows_of(wanted[due], now_s) >= 0).any():
            return due
        with opened(path) as (handle, is_now):
            contents = known or self._rows(path, handle, is_now.st_size)
            if contents is None:
                return due
            rows = contents.rows_of(wanted[due], now_s)
            order = np.argsort(rows, kind="stable")
            order = order[rows[order] >= 0]
            asked, place = np.unique(rows[order], return_inverse=True)
            data = list(entries_of(handle, contents, asked))
        for number, at in zip(due[order].tolist(), place.tolist(), strict=True):
            found[number] = data[at]
        if now_s - is_now.st_mtime > _DAY_S:
            with suppress(OSError):
                os.utime(path)
        return due[rows < 0]

    def _rows(self, path: str, handle: int, length: int) -> PackRows | None:
        """Returns what a pack has, and notes it: under its name it never changes. Of all packs together no more rows
        are noted than memory has room for, whatever files say of themselves.
        """
        contents = rows_in(handle, length)
        if contents is not None and len(contents.names) <= _MOST_KNOWN_ROWS:
            with self._noting:
                self._known[path] = contents
                rows = sum(len(each.names) for each in self._known.values())
                while len(self._known) > _MOST_KNOWN or rows > _MOST_KNOWN_ROWS:
                    rows -= len(self._known.pop(next(iter(self._known))).names)
        return contents

    def _merge(self, shelf: str) -> None:
        """Makes one pack of many small ones, as new as the newest of them: what is put meanwhile is newer. Those that
        are older than a longer pack stay: what it has of their entries is newer too. If two do so at once, there is one
        too many; a reader of a pack that just went misses its entries.
        """
        small = list(takewhile(_is_small, self._packs(shelf)))
        if len(small) < _MOST_SMALL:
            return
        kept: dict[int, PackEntry] = {}
        for path in small:
            for each in _living(path):
                kept.setdefault(each.name, each)
        self._written += _write(self._shelf(shelf), os.path.basename(small[0])[:_TIME_DIGITS], packed(kept.values()))
        for path in small:
            _remove(path)

    def _is_prune_due(self) -> bool:
        """Tells whether nobody looked for a day: many short runs together fill a disk too. A look that is to come was
        noted by a clock that went wrong.
        """
        try:
            return abs(time.time() - os.stat(os.path.join(self.folder, _PRUNED)).st_mtime) > _DAY_S
        except FileNotFoundError:
            return True


def _time_after(packs: Sequence[str]) -> str:
    """Returns the time for the name of a pack that is newer than all of these, of which the newest comes first: a clock
    may have been set back.
    """
    newest = int(os.path.basename(packs[0])[:_TIME_DIGITS], 16) if packs else 0
    return f"{min(max(time.time_ns(), newest + 1), _LAST_TIME):016x}"


def _is_small(path: str) -> bool:
    """Tells it of a pack that just went, too, and of what only has the name of one."""
    try:
        return os.lstat(path).st_size < _SMALL_BYTES
    except OSError:
        return True


def _write(folder: str, written: str, pack: bytes) -> int:
    """Writes a pack, and returns its length."""
    name = uuid4().hex
    unfinished = os.path.join(folder, f".{name}")
    try:
        handle = _created(unfinished)
    except FileNotFoundError:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle = _created(unfinished)
    try:
        with open(handle, "wb") as file:
            file.write(pack)
        os.replace(unfinished, os.path.join(folder, f"{written}{name}.pack"))
    except OSError:
        os.unlink(unfinished)
        raise
    return len(pack)


def _forget(packs: Iterable[str], name: int) -> None:
    """Removes those that have one entry alone, which was put anew: a long one becomes part of no other pack."""
    for path in packs:
        with suppress(OSError), opened(path) as (handle, is_now):
            contents = rows_in(handle, is_now.st_size)
            if contents is not None and contents.names.tolist() == [name]:
                os.unlink(path)


def _created(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _living(path: str) -> list[PackEntry]:
    """Returns the entries of a pack whose time is not over; none where it is gone, or was left half written."""
    try:
        with opened(path) as (handle, is_now):
            contents = rows_in(handle, is_now.st_size)
            if contents is None:
                return []
            rows = np.flatnonzero(contents.over_s > time.time())
            data = entries_of(handle, contents, rows)
            return list(map(PackEntry, contents.names[rows].tolist(), contents.over_s[rows].tolist(), data))
    except OSError:
        return []


def _remove(path: str) -> None:
    """Removes a pack, and the shelf that it was the last on."""
    with suppress(OSError):
        os.unlink(path)
        os.rmdir(os.path.dirname(path))


def _files(folder: str) -> Iterator[tuple[float, int, str]]:
    """Yields when each pack was used last, its size and its path; also of packs that a crash left unfinished.

    What has any other name was not written here, and is nobody's to remove. A shelf that went meanwhile, or that is
    another user's, hides no other.
    """
    for inner in _folders(folder, _INNER):
        for shelf in _folders(inner.path, _SHELF):
            with suppress(OSError):
                yield from _on_shelf(shelf.path)


def _on_shelf(folder: str) -> Iterator[tuple[float, int, str]]:
    for pack in os.scandir(folder):
        if _PACK.fullmatch(pack.name) or _UNFINISHED.fullmatch(pack.name):
            with suppress(OSError):
                found = pack.stat(follow_symlinks=False)
                yield found.st_mtime, found.st_size, pack.path


def _folders(folder: str, named: re.Pattern[str]) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError):
        yield from (
            each for each in os.scandir(folder) if named.fullmatch(each.name) and each.is_dir(follow_symlinks=False)
        )
