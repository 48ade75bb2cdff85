"""Dates in a world where days pass: the store's clock moves with the world's, and files are as old as they are made."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from firnline.app.places import now_ms
from firnline.errors import AlreadyExists
from firnline.lake import Lake
from firnline.ports.stores import ObjectMeta, ReadWrite, TaggedObject
from firnline.stores import local


@dataclass
class Clock:
    """The time of a world: the real one, moved on by hand, so that leases and grace can end at once.

    The store's clock is moved on with it; `skew_ms` is how far this machine's own is ahead of the store's, and `behind`
    by how much folders on disks of their own are behind the store.
    """

    ahead_ms: int = 0
    skew_ms: int = 0
    behind: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict, repr=False)

    def __call__(self) -> int:
        return now_ms() + self.ahead_ms + self.skew_ms

    def advance(self, ms: int) -> None:
        self.ahead_ms += ms

    def at(self, key: str) -> int:
        """Returns how far ahead of the disk an object is dated that is written now."""
        return self.ahead_ms - sum(ms for folder, ms in self.behind.items() if key.startswith(folder))


@dataclass(frozen=True)
class Dated:
    """A store that dates what firnline writes as far ahead of the disk as the world's clock was then.

    Table files keep their dates: they were written before the clock was moved.
    """

    store: ReadWrite
    clock: Clock

    def get(self, key: str) -> bytes:
        return self.store.get(key)

    def head(self, key: str) -> ObjectMeta:
        return self._dated(self.store.head(key), key)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        return (self._dated(found, found.key) for found in self.store.list(prefix))

    def _dated(self, found: ObjectMeta, key: str) -> ObjectMeta:
        return replace(found, modified_ms=(found.modified_ms or 0) + self.clock.written.get(key, 0))

    def names(self, folder: str) -> Sequence[str]:
        return self.store.names(folder)

    def links(self, folder: str) -> Sequence[str]:
        return self.store.links(folder)

    def put(self, key: str, data: bytes) -> None:
        self.clock.written[key] = self.clock.at(key)
        self.store.put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> None:
        before = self.clock.written.get(key)
        self.clock.written[key] = self.clock.at(key)  # also where the answer gets lost
        try:
            self.store.put_if_absent(key, data)
        except AlreadyExists:  # a try that never got there dates nothing
            self.clock.written[key] = before or 0
            raise

    def get_tagged(self, key: str) -> TaggedObject:
        return self.store.get_tagged(key)

    def put_if_match(self, key: str, data: bytes, seen: TaggedObject) -> None:
        self.clock.written[key] = self.clock.at(key)
        self.store.put_if_match(key, data, seen)


def dated(lake: Lake, clock: Clock, store: type[Dated] = Dated) -> Lake:
    """Returns the lake in the world of a clock: its stores' clocks are moved on with it, by the wrapper `store`."""
    stores = lake.places.stores
    opened, prompt = stores.open, stores.prompt
    lake.places.clock = clock
    vars(stores)["open"] = lambda settings: store(opened(settings), clock)
    vars(stores)["prompt"] = lambda settings: store(prompt(settings), clock)
    return lake


_dated: dict[tuple[int, int], int] = {}
_written_ns = local.written_ns


def date(path: str | Path, at_ms: float) -> None:
    """Makes a file as old as that, also for firnline's local store, which goes by the kernel's time too.

    No file can be given that one. So it is remembered that this very change of it was the dating, and does not count;
    whatever happens to the file afterwards makes it young, as it would any other.
    """
    os.utime(path, ns=(round(at_ms * 1_000_000), round(at_ms * 1_000_000)))
    found = os.stat(path)
    _dated[found.st_dev, found.st_ino] = found.st_ctime_ns
    setattr(local, "written_ns", _written_but_for_dating)  # noqa: B010


def copy_dated(source: str, target: str) -> str:
    """Copies a file for `shutil.copytree`, as old as the source: what was dated stays so."""
    shutil.copy2(source, target)
    found = os.stat(source)
    if _dated.get((found.st_dev, found.st_ino)) == found.st_ctime_ns:
        date(target, found.st_mtime_ns / 1_000_000)
    return target


def _written_but_for_dating(stat: os.stat_result) -> int:
    is_dating = _dated.get((stat.st_dev, stat.st_ino)) == stat.st_ctime_ns
    return stat.st_mtime_ns if is_dating else _written_ns(stat)
