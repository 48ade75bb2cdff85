"""How long to ask again, and when: requests that were refused together must not come back together."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on: at most `attempts` calls, none later than `budget_s` after the first failure."""

    attempts: int = 5
    base_delay_s: float = 0.1
    max_delay_s: float = 5.0
    budget_s: float = 60.0

    def pauses(self) -> Iterator[float]:
        """Yields how long to wait before each further attempt: doubling, jittered over its whole length."""
        started = time.monotonic()
        for attempt in range(self.attempts - 1):
            pause = random.uniform(0, min(self.max_delay_s, self.base_delay_s * 2**attempt))
            if time.monotonic() - started + pause > self.budget_s:
                return
            yield pause
