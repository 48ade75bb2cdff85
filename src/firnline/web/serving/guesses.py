"""Guesses at the token: each wrong one makes the next wait longer, for the address that it came from and for all."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from threading import Lock

_MOST = 1_000
_FORGOTTEN_S = 900.0
_EVERYONE = ""


@dataclass(frozen=True, slots=True)
class GuessPace:
    """So many wrong guesses are free, as people mistype; from then on each doubles the pause, up to the longest."""

    free: int
    longest_s: float

    def pause_s(self, misses: int) -> float:
        return 0.0 if misses < self.free else min(self.longest_s, 2.0 ** min(misses - self.free, 30))


OF_ONE, OF_ALL = GuessPace(5, 60.0), GuessPace(50, 2.0)
"""An address is kept away for a minute at most; everyone together for two seconds, lest guesses shut all others out."""


@dataclass
class Guesses:
    """How many wrong guesses there were, by address; of the last so many addresses, and for a quarter of an hour."""

    clock: Callable[[], float] = time.monotonic
    _misses: dict[str, tuple[int, float]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def wait_s(self, address: str) -> int:
        """Returns for how many whole seconds nothing is taken from an address; 0 where a guess may be made now."""
        now = self.clock()
        with self._lock:
            left = max(self._left(_key(address), OF_ONE, now), self._left(_EVERYONE, OF_ALL, now))
        return math.ceil(left)

    def missed(self, address: str) -> None:
        """Counts a wrong guess."""
        now = self.clock()
        with self._lock:
            for key in (_key(address), _EVERYONE):
                count, at = self._misses.pop(key, (0, now))
                self._misses[key] = (1 if now - at > _FORGOTTEN_S else count + 1, now)
            while len(self._misses) > _MOST:
                self._misses.pop(next(iter(self._misses)))

    def met(self, address: str) -> None:
        """Forgets the wrong guesses of an address: the token came from there."""
        with self._lock:
            self._misses.pop(_key(address), None)

    def _left(self, key: str, pace: GuessPace, now: float) -> float:
        count, at = self._misses.get(key, (0, now))
        return 0.0 if now - at > _FORGOTTEN_S else at + pace.pause_s(count) - now


def _key(address: str) -> str:
    """Returns what one guesser cannot change at will: of an IPv6 address its network."""
    try:
        found = ip_address(address)
    except ValueError:
        return address or "?"
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(IPv6Address(int(found) >> 64 << 64))
    return str(getattr(found, "ipv4_mapped", None) or found)
