"""Which links and mounts lie below folders of a local disk: asked at every look, answered by what changed since.

A link that takes the place of a file changes no metadata; the folder alone tells of it. So every folder is read, and
read again after it changed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b

from firnline.stores.mounts import Mount, mounts_now

_LOCAL = "file:///"
_SETTLED_NS = 2_000_000_000
"""A folder that changed later than so long before it was read may change again without a new time."""
_MOST_FOLDERS = 100_000
_NOTHING = (FileNotFoundError, NotADirectoryError)


@dataclass(frozen=True, slots=True)
class _Entries:
    """What a folder had in it, in that state."""

    state: tuple[int, int, int]
    folders: tuple[str, ...]
    links: tuple[str, ...]


class LinksBelow:
    """Remembers what it read of each folder, of a bounded number of them; threads share it."""

    def __init__(self) -> None:
        self._read: dict[str, _Entries] = {}

    def now(self) -> Callable[[Sequence[str], Sequence[str]], str | None]:
        """Returns what tells of links below folders, for one look at many tables: mounts are those of this moment."""
        return partial(self._known, mounts_now())

    def _known(self, mounts: Sequence[Mount], folders: Sequence[str], holes: Sequence[str]) -> str | None:
        """Returns what the links below some folders, given by their real identities, are known by, without what lies in
        `holes`: empty if there are none, other text for other links. None where that cannot be told: a folder may be
        walked through and not be read.
        """
        local = [each.removeprefix("file://").rstrip("/") for each in folders if each.startswith(_LOCAL)]
        if not local:
            return ""
        left_out = frozenset(each.removeprefix("file://").rstrip("/") for each in holes)
        found = set(_mounted(mounts, tuple(f"{each}/" for each in local), tuple(f"{each}/" for each in left_out)))
        try:
            found.update(link for each in local for link in self._below(each, left_out))
        except OSError:
            return None
        return _known_by(found) if found else ""

    def _below(self, folder: str, left_out: frozenset[str]) -> Iterator[str]:
        due = [folder]
        while due:
            here = due.pop()
            entries = self._entries(here)
            yield from (f"{here}/{each}" for each in entries.links)
            due += (below for each in entries.folders if (below := f"{here}/{each}") not in left_out)

    def _entries(self, folder: str) -> _Entries:
        """Returns what is in a folder; nothing if it is gone. Its state is taken first: what comes in while it is read
        changes it. The time is that of the last change of any kind, which no program sets back.
        """
        try:
            found = os.stat(folder or "/", follow_symlinks=False)
            state = found.st_dev, found.st_ino, found.st_ctime_ns
            known = self._read.get(folder)
            if known is not None and known.state == state:
                return known
            asked_ns = time.time_ns()
            entries = _entries(folder or "/", state)
        except _NOTHING:
            return _Entries((0, 0, 0), (), ())
        if asked_ns - found.st_ctime_ns > _SETTLED_NS:
            self._note(folder, entries)
        return entries

    def _note(self, folder: str, entries: _Entries) -> None:
        if len(self._read) >= _MOST_FOLDERS:
            self._read = {}
        self._read[folder] = entries


def _entries(folder: str, state: tuple[int, int, int]) -> _Entries:
    folders, links = [], []
    with os.scandir(folder) as found:
        for each in found:
            if each.is_symlink():
                links.append(each.name)
            elif each.is_dir(follow_symlinks=False):
                folders.append(each.name)
    return _Entries(state, tuple(folders), tuple(links))


def _mounted(mounts: Sequence[Mount], stems: tuple[str, ...], left_out: tuple[str, ...]) -> Iterator[str]:
    """Yields what is mounted below the folders, with what it shows: a single file can be, and a folder of anywhere."""
    for each in mounts:
        if each.point.startswith(stems) and not f"{each.point}/".startswith(left_out):
            yield f"{each.point}\0{each.device}\0{each.folder}"


def _known_by(links: Iterable[str]) -> str:
    return blake2b("\0".join(sorted(links)).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
