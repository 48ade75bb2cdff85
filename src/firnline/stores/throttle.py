"""How fast deletes go: a fixed budget per prefix, and below it a pace that follows what the store says.

A bulk delete counts by its keys: a store that takes 3,500 deletes a second takes three and a half full requests.
"Slow down" halves the pace, every success adds a little, and the size of a request follows the same rule.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from firnline.errors import PermanentStoreError
from firnline.ports.stores import Budget
from firnline.stores.keys import Key

KEYS_PER_SECOND = 3_500.0
LARGEST_BATCH = 1_000
_FIRST_BATCH = 250
_SMALLEST_BATCH = 10
_BATCH_STEP = 50
_SLOWEST = 1 / 16
_STEP = 1 / 100
_ONE_CUT_S = 1.0

Clock = Callable[[], float]


def configured_rate() -> float:
    """Returns FIRNLINE_DELETE_RATE, the keys per second under one prefix. Raises PermanentStoreError for anything else
    than a number above zero: a slip must not lift the limit.
    """
    said = os.environ.get("FIRNLINE_DELETE_RATE", "").strip()
    try:
        rate = float(said) if said else KEYS_PER_SECOND
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise PermanentStoreError(f"FIRNLINE_DELETE_RATE is {said!r}", "write a number of keys per second")
    return rate


def prefix_of(key: Key) -> str:
    """Returns what shares one budget: the bucket and the first folder. Coarser than any store's own parts, so never
    faster than it allows.
    """
    return f"{key.scheme}://{key.authority}/{key.path.lstrip('/').partition('/')[0]}"


@dataclass
class Queue:
    """A queue at one counter: every key takes its time, so no window of time ever sees more than it may."""

    free_at: float = float("-inf")

    def wait(self, keys: int, rate: float, now: float) -> float:
        """Returns how long to wait, and takes the place in the queue."""
        start = max(now, self.free_at)
        self.free_at = start + keys / rate
        return start - now


@dataclass
class LocalBudget:
    """A budget that this process has for itself. A copy counts alone: give each its share."""

    rate: float = field(default_factory=configured_rate)
    clock: Clock = time.monotonic
    _lines: dict[str, Queue] = field(default_factory=dict, repr=False)
    _lock: Any = field(default_factory=Lock, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"rate": self.rate, "clock": self.clock}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def reserve(self, prefix: str, keys: int) -> float:
        with self._lock:
            return self._lines.setdefault(prefix, Queue()).wait(keys, self.rate, self.clock())

    def share(self, parts: int) -> LocalBudget:
        return LocalBudget(self.rate / max(1, parts), self.clock)


@dataclass
class Pace:
    """The rate under one prefix, between a sixteenth of the ceiling and all of it, and the size of a request."""

    ceiling: float
    rate: float = 0.0
    batch: int = _FIRST_BATCH
    line: Queue = field(default_factory=Queue)
    cut_at: float = float("-inf")

    def __post_init__(self) -> None:
        self.rate = self.ceiling

    def slowed(self, now: float) -> None:
        """Halves, unless that was just done: requests in flight tell of that same moment."""
        if now - self.cut_at < _ONE_CUT_S:
            return
        self.cut_at = now
        self.rate = max(self.rate / 2, self.ceiling * _SLOWEST)
        self.batch = max(self.batch // 2, _SMALLEST_BATCH)

    def went_well(self) -> None:
        self.rate = min(self.rate + self.ceiling * _STEP, self.ceiling)
        self.batch = min(self.batch + _BATCH_STEP, LARGEST_BATCH)


class Throttle:
    """Everything that paces deletes of one process. Safe to share between threads."""

    def __init__(self, budget: Budget | None = None, clock: Clock = time.monotonic) -> None:
        self.budget: Budget = budget or LocalBudget(clock=clock)
        self._clock = clock
        self._paces: dict[str, Pace] = {}
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"budget": self.budget, "clock": self._clock}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def batch(self, prefix: str) -> int:
        """Returns how many keys the next request should bring."""
        with self._lock:
            return self._pace(prefix).batch

    def reserve(self, prefix: str, keys: int) -> float:
        """Returns how many seconds to wait before `keys` may be sent; their place is taken."""
        budgeted = self.budget.reserve(prefix, keys)
        with self._lock:
            pace = self._pace(prefix)
            return max(budgeted, pace.line.wait(keys, pace.rate, self._clock()))

    def slowed(self, prefix: str) -> None:
        """Notes that the store asked for less."""
        with self._lock:
            self._pace(prefix).slowed(self._clock())

    def went_well(self, prefix: str) -> None:
        with self._lock:
            self._pace(prefix).went_well()

    def _pace(self, prefix: str) -> Pace:
        return self._paces.setdefault(prefix, Pace(self.budget.rate))
