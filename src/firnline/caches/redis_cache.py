"""Entries in Redis, shared between machines. Every trouble with it is a miss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from firnline.caches.breaker import Breaker

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
