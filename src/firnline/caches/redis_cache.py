"""Entries in Redis, shared between machines. Every trouble with it is a miss, and what keeps failing is left alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


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


TIMEOUT_S = 0.1
LARGEST_ENTRY = 64 << 20
_PREFIX = "firnline:unit:"


def connect(url: str, timeout_s: float = TIMEOUT_S) -> redis.Redis:
    """Returns a client that gives up quickly and never tries again by itself. Not connected yet."""
    once = Retry(NoBackoff(), 0)
    return redis.Redis.from_url(url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, retry=once)


@dataclass
class RedisCache:
    """Reads and writes have a breaker each: a Redis that is full still answers questions."""

    url: str = field(repr=False)
    timeout_s: float = TIMEOUT_S

    def __post_init__(self) -> None:
        self._client = connect(self.url, self.timeout_s)
        self._reads, self._writes = Breaker(), Breaker()

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "timeout_s": self.timeout_s}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.url, self.timeout_s = state["url"], state["timeout_s"]
        self.__post_init__()

    def get(self, key: str) -> bytes | None:
        """Asks for one byte more than an entry may have: what is longer was not written by firnline."""
        if not self._reads.allows():
            return None
        try:
            found: Any = self._client.getrange(_PREFIX + key, 0, LARGEST_ENTRY)
        except (redis.RedisError, OSError, ValueError):
            self._reads.failed()
            return None
        self._reads.worked()
        return found if isinstance(found, bytes) and 0 < len(found) <= LARGEST_ENTRY else None

    def put(self, key: str, data: bytes, ttl_s: int) -> None:
        if len(data) > LARGEST_ENTRY or not self._writes.allows():
            return
        try:
            self._client.set(_PREFIX + key, data, ex=max(1, ttl_s))
        except (redis.RedisError, OSError, ValueError):
            self._writes.failed()
            return
        self._writes.worked()
