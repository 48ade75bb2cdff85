"""A budget that processes share: together never faster than the whole, and never stuck on a Redis that fails."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import get_context
from typing import Any

import pytest
import redis

from firnline.caches.budget import RedisBudget
from firnline.stores.throttle import LocalBudget, Throttle

PREFIX = "firnline:budget:"
RATE = 1_000.0


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with closing(redis.Redis.from_url(redis_url)) as opened:
        opened.flushall()
        yield opened


def budget(url: str, parts: int = 1) -> RedisBudget:
    return RedisBudget(url, LocalBudget(), timeout_s=5).share(parts)


def reserved(job: tuple[bytes, int, int]) -> list[float]:
    held, times, keys = job
    mine: RedisBudget = pickle.loads(held)
    return [mine.reserve("s3://lake/t", keys, RATE) for _ in range(times)]


def test_processes_stand_in_one_queue(redis_url: str, client: Any) -> None:
    """A hundred reservations of fifty keys are five seconds of work, whoever asks: waits come from one line."""
    shared = pickle.dumps(budget(redis_url, parts=4))
    before = client.time()
    with get_context("spawn").Pool(4) as pool:
        waits = [wait for each in pool.map(reserved, [(shared, 25, 50)] * 4, chunksize=1) for wait in each]
    free = int(client.get(PREFIX + "s3://lake/t")) - (before[0] * 1_000_000 + before[1])
    assert len(waits) == 100
    assert free >= 5_000_000, "the end of the line is never sooner than the whole rate allows"
    assert min(waits) >= 0
    assert len({round(each, 6) for each in waits if each}) >= 90, "no two got one place"


def test_one_that_works_alone_has_the_whole(redis_url: str, client: Any) -> None:
    mine = budget(redis_url, parts=10)
    assert mine.part == 1.0
    assert mine.reserve("s3://lake/t", 1_000, RATE) == 0
    assert 0.5 < mine.reserve("s3://lake/t", 1_000, RATE) <= 1.0
    assert mine.reserve("s3://lake/other", 1_000, RATE) == 0, "another lane has a budget of its own"


def test_nobody_leaves_a_long_line(redis_url: str, client: Any) -> None:
    """One delete a second, and four processes with four tables each: whoever then took its own part would send at once,
    beside all others.
    """
    line = [budget(redis_url, parts=1).reserve("s3://lake/slow", 1, 1.0) for _ in range(256)]
    assert line == sorted(line)
    assert 250 < line[-1] <= 255


def test_a_queue_that_is_empty_is_forgotten(redis_url: str, client: Any) -> None:
    budget(redis_url).reserve("s3://lake/t", 100, RATE)
    assert 0 < client.pttl(PREFIX + "s3://lake/t") <= 1_200


def waits_of(held: Any, parts: int) -> tuple[list[float], list[float]]:
    """Returns what a shared budget says where Redis fails, beside what the fixed part says."""
    now = [0.0]
    shared = RedisBudget(held, LocalBudget(clock=lambda: now[0]).share(parts), timeout_s=0.05)
    fixed = LocalBudget(1 / parts, lambda: now[0])
    ours, theirs = [], []
    for step in range(20):
        now[0] = step * 0.01
        ours.append(shared.reserve("p", 100, RATE))
        theirs.append(fixed.reserve("p", 100, RATE))
    return ours, theirs


@pytest.mark.parametrize("parts", [1, 8])
def test_without_redis_each_has_its_fixed_part(parts: int) -> None:
    ours, theirs = waits_of("redis://127.0.0.1:1/0", parts)
    assert ours == theirs


@pytest.mark.parametrize("lie", ["nan", "-1e300", "1e300", "text"])
def test_a_redis_that_makes_no_sense_is_not_believed(redis_url: str, client: Any, lie: str) -> None:
    client.set(PREFIX + "p", lie)
    mine = RedisBudget(redis_url, LocalBudget().share(4), timeout_s=5)
    for _ in range(5):
        assert 0 <= mine.reserve("p", 100, RATE) <= 5 * 100 / (RATE / 4)
        client.set(PREFIX + "p", lie)


def test_a_throttle_takes_it_as_any_budget(redis_url: str, client: Any) -> None:
    throttle = pickle.loads(pickle.dumps(Throttle(budget=budget(redis_url))))
    line = throttle.deletes("s3://lake/t")
    throttle.reserve(line, 500)
    assert throttle.reserve(line, 500) > 0


def test_a_password_is_not_shown() -> None:
    assert "hunter2" not in repr(RedisBudget("redis://me:hunter2@h/0", LocalBudget()))
