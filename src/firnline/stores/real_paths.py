"""Where local files really are: by whatever links and mounts a path leads there.

Two paths of one file have two identities, and what a table needs by the one looks like garbage by the other. So paths
are compared as the operating system walks them: without symbolic links, and a folder that is mounted in two places by
one of them. Hard links need no care: each is a name of its own, and a file goes with the last of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from stat import S_ISLNK
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import PermanentStoreError
from firnline.model.locations import identity, parse_location
from firnline.stores.local import NOTHING_THERE
from firnline.stores.mounts import Mount, is_in, mounts_now

_LOCAL = "file:///"
_NAME = r"(?s)[^/]*\z"
_FEW = 16
"""So many names are looked at one by one; for more of them, their folders are read."""
Seen = TypeVar("Seen")


class RealPaths:
    """Makes real identities of identities. Holds what it found, for as long as a decision takes: links can change.

    What lies in one of the folders `spelled` is named by that spelling, as a listing of the folder names it. A copy
    that travels to another process looks for itself.
    """

    def __init__(self, spelled: tuple[str, ...] = ()) -> None:
        self._spelled = spelled
        self._folders: dict[str, str] = {}
        self._links: dict[str, tuple[str, ...] | None] = {}

    def __reduce__(self) -> tuple[type[RealPaths], tuple[tuple[str, ...]]]:
        return RealPaths, (self._spelled,)

    def __call__(self, name: str) -> str:
        """Returns the real identity of a file; what is not local is as it is called. Raises PermanentStoreError where
        this user may not see where a path leads, here and in all that follows.
        """
        if not name.startswith(_LOCAL):
            return name
        path = name.removeprefix("file://")
        if _is_link(path) or os.path.basename(path) in self._mounted:
            name = "file://" + self._at_one_mount(_followed(path))
        return self.entry(name)

    def entry(self, name: str) -> str:
        """Returns what a file is called in the folder that it really lies in, also where it is a link."""
        folder, slash, last = name.rpartition("/")
        return f"{self._folder(folder)}{slash}{last}" if name.startswith(_LOCAL) else name

    def column(self, identities: pa.Array) -> pa.Array:
        """Returns the same of many; each folder is looked at once."""
        if not pc.any(pc.starts_with(identities, _LOCAL)).as_py():
            return identities
        if len(identities) <= _FEW:
            real = pa.array(map(self, identities.to_pylist()), pa.string())
            return identities if real.equals(identities) else real
        folders = pc.unique(pc.replace_substring_regex(identities, _NAME, "")).to_pylist()
        doubtful = self._perhaps_links(identities, folders)
        if not doubtful and all(self.entry(each) == each for each in folders):
            return identities
        names = identities.to_pylist()
        return pa.array([self(each) if each in doubtful else self.entry(each) for each in names], pa.string())

    def has_links(self, folder: str) -> bool:
        """Tells whether a folder has links to files, or may have: one that can be walked through and not be read."""
        return folder.startswith(_LOCAL) and self._links_in(folder) != ()

    def forget(self) -> None:
        self._folders, self._links = {}, {}
        for each in ("_wanted", "_mounts", "_mounted"):
            self.__dict__.pop(each, None)

    def _perhaps_links(self, identities: pa.Array, folders: Sequence[str]) -> set[str]:
        """Returns the names of links, and all those in folders that may not be read."""
        inside = {each: self._links_in(each) for each in folders if each.startswith(_LOCAL)}
        links = pa.array([link for found in inside.values() for link in found or ()], pa.string())
        doubtful = pc.is_in(identities, value_set=links)
        for unread in (each for each, found in inside.items() if found is None):
            doubtful = pc.or_(doubtful, pc.starts_with(identities, unread))
        return set(identities.filter(doubtful).to_pylist())

    def _links_in(self, folder: str) -> tuple[str, ...] | None:
        """Returns the links to files, or to nothing, in a folder, and what may be a file that is mounted there; None if
        it may not be read. Reading one tells of all its entries whether they are links, at a fraction of the cost of
        asking for each.
        """
        if folder not in self._links:
            self._links[folder] = _links_in(folder, self._mounted)
        return self._links[folder]

    def _folder(self, folder: str) -> str:
        if folder not in self._folders:
            real = self._resolved(folder)
            there = next((each for each in self._wanted if is_in(real, each[0])), None)
            self._folders[folder] = real if there is None else there[1] + real[len(there[0]) :]
        return self._folders[folder]

    @cached_property
    def _wanted(self) -> list[tuple[str, str]]:
        """The folders with a spelling of their own, real and as they are spelled, innermost first."""
        names = [identity(each).rstrip("/") for each in self._spelled]
        found = [(self._resolved(each), each) for each in names if each.startswith(_LOCAL)]
        return sorted(found, key=lambda each: -len(each[0]))

    def _resolved(self, folder: str) -> str:
        path = _followed(folder.removeprefix("file://") or "/")
        return "file://" + self._at_one_mount(path).rstrip("/")

    @cached_property
    def _mounts(self) -> tuple[Mount, ...]:
        """Every mount, innermost first."""
        return mounts_now()

    @cached_property
    def _mounted(self) -> frozenset[str]:
        """The last names of all mounts: a single file can be one."""
        return frozenset(os.path.basename(each.point) for each in self._mounts if each.point != "/")

    def _at_one_mount(self, path: str) -> str:
        """Returns the path by the mount that shows most of its device, of several the one whose name comes first."""
        here = next((each for each in self._mounts if is_in(path, each.point)), None)
        if here is None:
            return path
        inside = _joined(here.folder, os.path.relpath(path, here.point))
        showing = [each for each in self._mounts if each.device == here.device and is_in(inside, each.folder)]
        chosen = min(showing, key=lambda each: (len(each.folder), each.point))
        return _joined(chosen.point, os.path.relpath(inside, chosen.folder))


def without_links(location: str) -> str:
    """Returns a folder by the name that it has without symbolic links; one that is not local, or led to by none, as it
    is called.
    """
    named = parse_location(location)
    real = _followed(named.path) if named.scheme == "file" else named.path
    if real == named.path.rstrip("/"):
        return location
    return f"file://{real}" if location.startswith("file:") else real


def _followed(path: str) -> str:
    """Returns a path without symbolic links."""
    return _looked(lambda each: _real(each, strict=True), path, instead=lambda each: _real(each, strict=False))


def _real(path: str, strict: bool) -> str:
    return os.path.realpath(path, strict=strict)


def _is_link(path: str) -> bool:
    return _looked(lambda each: S_ISLNK(os.lstat(each).st_mode), path, instead=lambda each: False)


def _looked(look: Callable[[str], Seen], path: str, instead: Callable[[str], Seen]) -> Seen:
    """Returns what is seen at a path, `instead` where nothing is. Python's own questions say the same where they are
    not allowed to look:

    1. A table needs a file by a link, in a folder that only its owner may walk through.
    2. The link is taken for a file. What it leads to, in another table's folder, counts as needed by nobody.
    """
    try:
        return look(path)
    except ValueError:  # no file can have such a name
        return instead(path)
    except OSError as error:
        if error.errno in NOTHING_THERE:
            return instead(path)
        raise PermanentStoreError(
            f"nobody can tell where {path!r} leads: {error.strerror}", "let this user walk through the folders above it"
        ) from error


def _links_in(folder: str, mounted: frozenset[str]) -> tuple[str, ...] | None:
    try:
        with os.scandir(folder.removeprefix("file://")) as found:
            led = (each for each in found if each.is_symlink() or each.name in mounted)
            names = [each.name for each in led if not os.path.isdir(each.path)]
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError:
        return None
    stem = folder.rstrip("/")
    return tuple(f"{stem}/{each}" for each in names if _is_text(each))


def _is_text(name: str) -> bool:
    """Tells whether any table can have the name: one that is no UTF-8 is in no metadata."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _joined(folder: str, below: str) -> str:
    return folder if below == "." else os.path.join(folder, below)
