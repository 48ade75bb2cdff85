"""Answers that are kept for a while: a page shows one at once, with its age; an old one is made anew behind it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

Kept = TypeVar("Kept")
_MOST = 256
_MAKERS = 4


@dataclass(frozen=True, slots=True)
class _Entry(Generic[Kept]):
    value: Kept
    made_s: float


@dataclass
class Shelf(Generic[Kept]):
    """So many answers, by name. One that is older than `fresh_s` is handed out once more while it is made anew. Each is
    made once, however many ask for it at the same time, and only some at once.
    """

    fresh_s: float = 30.0
    clock: Callable[[], float] = time.monotonic
    _entries: dict[str, _Entry[Kept]] = field(default_factory=dict)
    _making: dict[str, Future[Kept]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _makers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_MAKERS, thread_name_prefix="firnline-page")
    )

    def get(self, name: str, make: Callable[[], Kept]) -> tuple[Kept, float]:
        """Returns the answer, and how many seconds old it is. Raises what `make` raises, where there is none yet."""
        with self._lock:
            found = self._entries.get(name)
            if found is None:
                coming = self._begun(name, make)
            elif (age := self.clock() - found.made_s) > self.fresh_s:
                self._begun(name, make)
        return (coming.result(), 0.0) if found is None else (found.value, age)

    def forget(self, prefix: str) -> None:
        """Drops answers whose names begin so: something was done that changes them. What is being made is not kept
        either, for it may have been read before that.
        """
        with self._lock:
            self._entries = {name: each for name, each in self._entries.items() if not name.startswith(prefix)}
            self._making = {name: each for name, each in self._making.items() if not name.startswith(prefix)}

    def _begun(self, name: str, make: Callable[[], Kept]) -> Future[Kept]:
        """Returns the answer to come. Only one who has the lock may ask."""
        coming = self._making.get(name)
        if coming is None:
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
