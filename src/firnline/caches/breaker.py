"""Leaving alone what keeps failing: a cache that is down must not cost a wait per unit."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock


class Breaker:
    """Opens after some failures in a row; after a pause one caller tries again."""

    def __init__(self, failures: int = 3, pause_s: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._pause_s, self._clock = failures, pause_s, clock
        self._failures = 0
        self._until = 0.0
        self._lock = Lock()

    def allows(self) -> bool:
        """Tells whether to try now. While it is open only the first caller after each pause may."""
        with self._lock:
            if self._failures < self._most:
                return True
            now = self._clock()
            if now < self._until:
                return False
            self._until = now + self._pause_s
            return True

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            self._until = self._clock() + self._pause_s

    def worked(self) -> None:
        with self._lock:
            self._failures = 0
