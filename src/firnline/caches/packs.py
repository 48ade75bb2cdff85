"""Files of many entries each: what was remembered together lies together, and is read in one piece.

A pack is written once, whole, and never changed. It begins with its mark and the number of entries; a row for each
follows, in the order of their names, then the entries. Nothing in it is believed: where lengths make no sense it is no
pack, and whose bytes an entry is tells its seal.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

LARGEST_ENTRY = 64 << 20
LONGEST_PACK = 256 << 20
_HEAD = struct.Struct(">16sQ")
_MARK = b"firnline pack 01"
_ROW = np.dtype([("name", ">u8"), ("over_s", ">u8"), ("size", ">u4")])
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_SHORT = 16


class PackEntry(NamedTuple):
    """`over_s` is when its time is over, in seconds. It is under no seal: what is kept alive too long is still true."""

    name: int
    over_s: int
    data: bytes


def short(name: str) -> int:
    """Returns the part of an entry's name by which it is found. Two of one short name are told apart by their seals."""
    return int(name[:_SHORT], 16)


def packed(entries: Iterable[PackEntry]) -> bytes:
    """Returns a pack of these entries, none of which is longer than any may be: of all that fit into one."""
    total = _HEAD.size
    every: list[PackEntry] = []
    for each in entries:
        total += _ROW.itemsize + len(each.data)
        if total > LONGEST_PACK:
            break
        every.append(each)
    every.sort()
    rows = np.array([(each.name, each.over_s, len(each.data)) for each in every], dtype=_ROW)
    return b"".join([_HEAD.pack(_MARK, len(every)), rows.tobytes(), *(each.data for each in every)])


@dataclass(frozen=True, slots=True)
class PackRows:
    """Where each entry of a pack begins and ends, by the order of their names."""

    names: np.ndarray[Any, Any]
    over_s: np.ndarray[Any, Any]
    ends: np.ndarray[Any, Any]

    def rows_of(self, names: np.ndarray[Any, Any], now_s: float) -> np.ndarray[Any, Any]:
        """Returns the row of each name; -1 where it is not here, or its time is over."""
        if not len(self.names):
            return np.full(len(names), -1)
        rows = np.minimum(np.searchsorted(self.names, names), len(self.names) - 1)
        return np.where((self.names[rows] == names) & (self.over_s[rows] > now_s), rows, -1)


@contextmanager
def opened(path: str) -> Iterator[tuple[int, os.stat_result]]:
    """Hands out the open file and what it is. Raises OSError where it is gone or no plain file: a pipe would block."""
    handle = os.open(path, _FLAGS)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path} is no plain file")
        yield handle, found
    finally:
        os.close(handle)


def rows_in(handle: int, length: int) -> PackRows | None:
    """Returns what a pack of this length has; None where it is none, or not all of it is there. One that is longer than
    any was not written here: a hole in a file costs its maker nothing, and its reader memory.
    """
    if length > LONGEST_PACK:
        return None
    head = os.pread(handle, _HEAD.size, 0)
    if len(head) < _HEAD.size:
        return None
    mark, count = _HEAD.unpack(head)
    start = _HEAD.size + count * _ROW.itemsize
    if mark != _MARK or start > length:
        return None
    said = os.pread(handle, start - _HEAD.size, _HEAD.size)
    if len(said) != start - _HEAD.size:  # it was cut since its length was asked for
        return None
    rows = np.frombuffer(said, dtype=_ROW)
    ends = start + np.cumsum(rows["size"], dtype=np.uint64)
    if count and (ends[-1] != length or rows["size"].max() > LARGEST_ENTRY):
        return None
    return PackRows(rows["name"].astype(np.uint64), rows["over_s"].astype(np.uint64), np.append(np.uint64(start), ends))


def entries_of(handle: int, contents: PackRows, rows: np.ndarray[Any, Any]) -> Iterator[bytes]:
    """Yields the entries of these rows, which ascend; those that lie side by side are read at once."""
    for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1):
        if len(run):
            bounds = contents.ends[run[0] : run[-1] + 2].tolist()
            data = os.pread(handle, bounds[-1] - bounds[0], bounds[0])
            yield from _cut(data, bounds)


def _cut(data: bytes, bounds: Sequence[int]) -> Iterator[bytes]:
    for start, end in pairwise(bounds):
        yield data[start - bounds[0] : end - bounds[0]]
