"""Entries in Redis, shared between machines. Every trouble with it is a miss, and what keeps failing is left alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

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
_AT_ONCE = 64
"""Questions that are under way together: one answer after the other is waited for, each as long as it may take."""

T = TypeVar("T")


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

    def get(self, shelf: str, names: Sequence[str]) -> list[bytes | None]:
        """Asks for one byte more than an entry may have: what is longer was not written by firnline."""
        found: list[bytes | None] = []
        for some in _in_parts(names):
            said = self._said(self._reads, [("GETRANGE", _PREFIX + each, 0, LARGEST_ENTRY) for each in some])
            found += map(_entry, said or [None] * len(some))
        return found

    def put(self, shelf: str, entries: Sequence[tuple[str, bytes]], ttl_s: int) -> None:
        for some in _in_parts([each for each in entries if len(each[1]) <= LARGEST_ENTRY]):
            self._said(self._writes, [("SET", _PREFIX + name, data, "EX", max(1, ttl_s)) for name, data in some])

    def _said(self, breaker: Breaker, questions: Sequence[tuple[Any, ...]]) -> list[Any] | None:
        """Returns the answers; None where nothing was asked or answered. All that fail are one failure."""
        if not breaker.allows():
            return None
        pipe: Any = self._client.pipeline(transaction=False)
        for each in questions:
            pipe.execute_command(*each)
        try:
            said: list[Any] = pipe.execute(raise_on_error=False)
        except Exception:  # its library raises what it stumbles over, where another server answers, or a hostile one
            breaker.failed()
            return None
        if all(isinstance(each, redis.RedisError) for each in said):
            breaker.failed()
        else:
            breaker.worked()
        return said


def _in_parts(every: Sequence[T]) -> Iterator[Sequence[T]]:
    return (every[start : start + _AT_ONCE] for start in range(0, len(every), _AT_ONCE))


def _entry(said: Any) -> bytes | None:
    return said if isinstance(said, bytes) and 0 < len(said) <= LARGEST_ENTRY else None
