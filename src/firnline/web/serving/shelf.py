"""Answers that are kept for a while: a page shows one at once, with its age; an old one is made anew behind it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

from firnline.web.serving.waits import Busy, Waits

Kept = TypeVar("Kept")
_MOST = 256
_MAKERS = 7
_OF_A_TABLE = 3


@dataclass(frozen=True, slots=True)
class _Entry(Generic[Kept]):
    value: Kept
    made_s: float


@dataclass
class Shelf(Generic[Kept]):
    """So many answers, by name, which begins with a line that names the table. One that is older than `fresh_s` is
    handed out once more while it is made anew. Each is made once, however many ask for it at the same time, and only
    some at once, of one table fewer. `waits` counts those who ask for one that is not there yet.
    """

    fresh_s: float = 30.0
    clock: Callable[[], float] = time.monotonic
    waits: Waits | None = None
    _entries: dict[str, _Entry[Kept]] = field(default_factory=dict)
    _making: dict[str, Future[Kept]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _makers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_MAKERS, thread_name_prefix="firnline-page")
    )

    def get(self, name: str, make: Callable[[], Kept]) -> tuple[Kept, float]:
        """Returns the answer, and how many seconds old it is. Raises what `make` raises, where there is none yet, and
        Busy where enough wait for the table.
        """
        found = self._kept(name, make)
        if found is not None:
            return found
        with self.waits.of(_table(name)) if self.waits else nullcontext():
            with self._lock:
                coming = self._begun(name, make)
            if coming is None:
                raise Busy("much of this table is being read already", hint="ask again in some seconds")
            return coming.result(), 0.0

    def _kept(self, name: str, make: Callable[[], Kept]) -> tuple[Kept, float] | None:
        """Returns an answer that is there, with its age; an old one is made anew, if there is room for that."""
        with self._lock:
            found = self._entries.get(name)
            if found is None:
                return None
            age = self.clock() - found.made_s
            if age > self.fresh_s:
                self._begun(name, make)
        return found.value, age

    def forget(self, prefix: str) -> None:
        """Drops answers whose names begin so: something was done that changes them. What is being made is not kept
        either, for it may have been read before that.
        """
        with self._lock:
            self._entries = {name: each for name, each in self._entries.items() if not name.startswith(prefix)}
            self._making = {name: each for name, each in self._making.items() if not name.startswith(prefix)}

    def _begun(self, name: str, make: Callable[[], Kept]) -> Future[Kept] | None:
        """Returns the answer to come; None where enough of its table is being made. One who has the lock may ask."""
        coming = self._making.get(name)
        if coming is None:
            if sum(_table(each) == _table(name) for each in self._making) >= _OF_A_TABLE:
                return None
            coming = self._making[name] = Future()
            self._makers.submit(self._make, name, make, coming)
        return coming

    def _make(self, name: str, make: Callable[[], Kept], coming: Future[Kept]) -> None:
        try:
            value = make()
        except BaseException as problem:  # those who wait are told; the next request asks anew
            self._end(name, coming, None)
            coming.set_exception(problem)
        else:
            self._end(name, coming, _Entry(value, self.clock()))
            coming.set_result(value)

    def _end(self, name: str, coming: Future[Kept], made: _Entry[Kept] | None) -> None:
        """Keeps what was made, unless it was forgotten meanwhile; another may be in the making then."""
        with self._lock:
            if self._making.get(name) is not coming:
                return
            del self._making[name]
            self._entries.pop(name, None)
            if made is not None:
                self._entries[name] = made
            while len(self._entries) > _MOST:
                self._entries.pop(next(iter(self._entries)))


def _table(name: str) -> str:
    return name.partition("\n")[0]
