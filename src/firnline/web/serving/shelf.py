"""Answers that are kept for a while: a page shows one at once, with its age; an old one is made anew behind it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

Kept = TypeVar("Kept")
_MOST = 256
_MAKERS = 2


@dataclass(frozen=True, slots=True)
class _Entry(Generic[Kept]):
    value: Kept
    made_s: float


@dataclass
class Shelf(Generic[Kept]):
    """So many answers, by name. One that is older than `fresh_s` is handed out once more while it is made anew."""

    fresh_s: float = 30.0
    clock: Callable[[], float] = time.monotonic
    _entries: dict[str, _Entry[Kept]] = field(default_factory=dict)
    _making: set[str] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)
    _makers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_MAKERS, thread_name_prefix="firnline-page")
    )

    def get(self, name: str, make: Callable[[], Kept]) -> tuple[Kept, float]:
        """Returns the answer, and how many seconds old it is. Raises what `make` raises, where there is none yet."""
        found = self._entries.get(name)
        if found is None:
            return self._put(name, make()), 0.0
        age = self.clock() - found.made_s
        if age > self.fresh_s:
            self._anew(name, make)
        return found.value, age

    def forget(self, prefix: str) -> None:
        """Drops answers whose names begin so: something was done that changes them."""
        with self._lock:
            self._entries = {name: each for name, each in self._entries.items() if not name.startswith(prefix)}

    def _put(self, name: str, value: Kept) -> Kept:
        with self._lock:
            self._entries.pop(name, None)
            self._entries[name] = _Entry(value, self.clock())
            while len(self._entries) > _MOST:
                self._entries.pop(next(iter(self._entries)))
        return value

    def _anew(self, name: str, make: Callable[[], Kept]) -> None:
        with self._lock:
            if name in self._making:
                return
            self._making.add(name)

        def work() -> None:
            try:
                self._put(name, make())
            except Exception:  # the next request asks by itself, and is told
                self.forget(name)
            finally:
                self._making.discard(name)

        self._makers.submit(work)
