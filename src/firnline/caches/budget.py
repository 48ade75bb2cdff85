"""One budget of requests for all processes that ask a store: for each lane a queue whose end Redis remembers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import redis

from firnline.caches.redis_cache import TIMEOUT_S, Breaker, connect
from firnline.ports.stores import Budget

_PREFIX = "firnline:budget:"
_LONGEST_WAIT_S = 900.0
"""No line is longer than what all processes have under way, and a request takes a second of it at the most. One that
left a line only because it is long would send beside all others.
"""
_TAKE_A_PLACE = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local start = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0'))
local free = start + math.ceil(tonumber(ARGV[1]) * 1000000 / tonumber(ARGV[2]))
redis.call('SET', KEYS[1], string.format('%.0f', free), 'PX', string.format('%.0f', (free - now) / 1000 + 1000))
return string.format('%.0f', start - now)
"""
"""Every key takes its time at the end of the queue, by Redis' own clock: no two holders get the same place."""


@dataclass
class RedisBudget:
    """A whole budget that any number of holders share: one that works alone may have all of it.

    `alone` is this holder's fixed part; it counts while Redis cannot be asked, so that holders who do not know of
    each other never send more than the whole together. `part`: of all that a store takes, the holders of one and the
    same part stand in one line.
    """

    url: str = field(repr=False)
    alone: Budget
    timeout_s: float = TIMEOUT_S
    part: float = 1.0

    def __post_init__(self) -> None:
        self._client = connect(self.url, self.timeout_s)
        self._breaker = Breaker()

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "alone": self.alone, "timeout_s": self.timeout_s, "part": self.part}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def reserve(self, lane: str, keys: int, rate: float) -> float:
        wait = self._asked(lane, keys, rate) if self._breaker.allows() else None
        return self.alone.reserve(lane, keys, rate) if wait is None else wait

    def share(self, parts: int) -> RedisBudget:
        """Returns the same budget, with a smaller part for when its holder is left alone."""
        return RedisBudget(self.url, self.alone.share(parts), self.timeout_s, self.part)

    def _asked(self, lane: str, keys: int, rate: float) -> float | None:
        """Returns the seconds to wait; None where Redis does not say, or says what makes no sense."""
        try:
            line = f"{_PREFIX}{'' if self.part == 1 else f'{self.part:g} of '}{lane}"
            said: Any = self._client.eval(_TAKE_A_PLACE, 1, line, str(keys), str(rate * self.part))
            wait = int(said) / 1_000_000
        except (redis.RedisError, OSError, ValueError, TypeError):
            self._breaker.failed()
            return None
        self._breaker.worked()
        return wait if 0 <= wait <= _LONGEST_WAIT_S else None
