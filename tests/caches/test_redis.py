"""Redis down, slow, full, flushed or lying: the survey says what it says without a cache."""

from __future__ import annotations

import os
import pickle
import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import redis

from firnline.caches.redis_cache import LARGEST_ENTRY, RedisCache
from firnline.local.engine import LocalEngine
from firnline.ports.stores import ObjectMeta
from firnline.stores.objects import ObjectStores
from firnline.testing.counting import Counting
from firnline.testing.engines import a_long_life
from firnline.testing.surveys import expected
from firnline.testing.tables import QuickFiles, SmallTable
from harness.servers.redis import redis as redis_server

from .lying import memory_of
from .worlds import survey_with

PREFIX = "firnline:unit:"


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with closing(redis.Redis.from_url(redis_url)) as opened:
        opened.flushall()
        yield opened


@pytest.fixture
def world(tmp_path: Path) -> tuple[SmallTable, set[int]]:
    return a_long_life(SmallTable(QuickFiles(), f"file://{tmp_path}/t"))


def opened_by(table: SmallTable, expired: set[int], cache: RedisCache) -> int:
    """Returns how many units a survey opened; its answer must be the right one."""
    counting = Counting(ObjectStores())
    assert survey_with(LocalEngine(), table, expired, counting, memory_of(cache)) == expected(table, expired)
    return sum(verb == "get" and key.endswith(".avro") for verb, key in counting.calls())


def test_a_second_process_opens_nothing(redis_url: str, client: Any, world: tuple[SmallTable, set[int]]) -> None:
    cache = RedisCache(redis_url, timeout_s=2)
    every = opened_by(*world, cache)
    assert every == client.dbsize()
    assert opened_by(*world, pickle.loads(pickle.dumps(cache))) == 0


def test_entries_end_with_the_window(redis_url: str, client: Any, world: tuple[SmallTable, set[int]]) -> None:
    opened_by(*world, RedisCache(redis_url, timeout_s=2))
    lives = [client.ttl(key) for key in client.scan_iter(PREFIX + "*")]
    assert lives
    assert all(86_000 < life <= 86_400 for life in lives), "the survey's window is a day"


def test_down(world: tuple[SmallTable, set[int]]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        cache = RedisCache(f"redis://127.0.0.1:{taken.getsockname()[1]}/0")
        every = opened_by(*world, cache)
    assert every == opened_by(*world, RedisCache("redis://127.0.0.1:1/0")) > 0


def test_what_keeps_silent_is_asked_three_times_and_then_left_alone() -> None:
    """A server that accepts and never answers: each question waits out its time, so there must be few of them."""
    accepted: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        Thread(target=_accept, args=(silent, accepted), daemon=True).start()
        cache = RedisCache(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", timeout_s=0.05)
        assert [cache.get("", [f"{number}"]) for number in range(200)] == [[None]] * 200
        assert len(accepted) == 3
        for each in accepted:
            each.close()


def _accept(silent: socket.socket, accepted: list[socket.socket]) -> None:
    while True:
        try:
            accepted.append(silent.accept()[0])
        except OSError:
            return


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"*1\r\n" * 20_000, id="lists in lists"),
        pytest.param(b":5\r\n" * 64, id="numbers"),
        pytest.param(b"$99999999999999999999\r\n", id="too long"),
        pytest.param(b"%1\r\n*0\r\n:1\r\n" * 64, id="lists as keys"),
        pytest.param(b"#x\r\n" * 64, id="no truth"),
    ],
)
def test_what_is_no_redis(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as strange:
        Thread(target=_tell, args=(strange, answer), daemon=True).start()
        cache = RedisCache(f"redis://127.0.0.1:{strange.getsockname()[1]}/0")
        for _ in range(5):
            cache.put("", [("a", b"x")], 60)
            assert cache.get("", ["a", "b"]) == [None, None]


def _tell(server: socket.socket, answer: bytes) -> None:
    """Says the same to all, one after the other."""
    while True:
        try:
            asking, _ = server.accept()
            with asking:
                while asking.recv(1 << 16):
                    asking.sendall(answer)
        except ConnectionError:
            continue
        except OSError:
            return


def test_slow(tmp_path: Path, world: tuple[SmallTable, set[int]]) -> None:
    with redis_server(tmp_path) as server:
        every = opened_by(*world, RedisCache(server.settings["url"], timeout_s=2))
        os.kill(server.pid, signal.SIGSTOP)
        try:
            assert opened_by(*world, RedisCache(server.settings["url"], timeout_s=0.05)) == every
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert opened_by(*world, RedisCache(server.settings["url"], timeout_s=2)) == 0


def test_full(tmp_path: Path, world: tuple[SmallTable, set[int]]) -> None:
    with redis_server(tmp_path, memory="64mb") as server, closing(redis.Redis.from_url(server.settings["url"])) as full:
        cache = RedisCache(server.settings["url"], timeout_s=2)
        every = opened_by(*world, cache)
        full.config_set("maxmemory", "1")
        world[0].append()
        assert opened_by(*world, RedisCache(server.settings["url"], timeout_s=2)) == 2, "what is there is still told"
        assert full.dbsize() == every
        full.flushall()
        assert opened_by(*world, RedisCache(server.settings["url"], timeout_s=2)) == every + 2


class Flushing(ObjectStores):
    """Flushes Redis at every third unit that is read."""

    def __init__(self, client: Any) -> None:
        super().__init__()
        self.reads, self._client = 0, client

    def get(self, key: str) -> bytes:
        self.reads += 1
        if self.reads % 3 == 0:
            self._client.flushall()
        return super().get(key)

    def head(self, key: str) -> ObjectMeta:
        return super().head(key)


def test_flushed_in_the_middle(redis_url: str, client: Any, world: tuple[SmallTable, set[int]]) -> None:
    table, expired = world
    for _ in range(2):
        store = Flushing(client)
        memory = memory_of(RedisCache(redis_url, timeout_s=2))
        assert survey_with(LocalEngine(), table, expired, store, memory) == expected(table, expired)
        assert store.reads > 3


def test_lying(redis_url: str, client: Any, world: tuple[SmallTable, set[int]]) -> None:
    every = opened_by(*world, RedisCache(redis_url, timeout_s=2))
    keys = sorted(client.scan_iter(PREFIX + "*"))
    values = client.mget(keys)
    for key, value in zip(keys, [values[-1], *values[:-1]], strict=True):
        client.set(key, value)
    assert opened_by(*world, RedisCache(redis_url, timeout_s=2)) == every, "entries of other units are none"
    assert opened_by(*world, RedisCache(redis_url, timeout_s=2)) == 0, "and were replaced"
    for key, value in zip(keys, values, strict=True):
        client.set(key, value[:-1] + bytes([value[-1] ^ 1]))
    assert opened_by(*world, RedisCache(redis_url, timeout_s=2)) == every
    for key in keys:
        client.delete(key)
        client.rpush(key, "a list, where a text is expected")
    assert opened_by(*world, RedisCache(redis_url, timeout_s=2)) == every


def test_an_entry_longer_than_any_is_not_taken(redis_url: str, client: Any) -> None:
    cache = RedisCache(redis_url, timeout_s=5)
    client.set(PREFIX + "giant", b"")
    client.setrange(PREFIX + "giant", LARGEST_ENTRY, b"x")
    cache.put("", [("short", b"x"), ("too long", bytes(LARGEST_ENTRY + 1))], 60)
    assert cache.get("", ["giant", "short", "none"]) == [None, b"x", None]
    assert not client.exists(PREFIX + "too long")
    client.flushall()


def test_a_password_is_not_in_what_is_shown() -> None:
    assert "hunter2" not in repr(RedisCache("redis://me:hunter2@127.0.0.1:1/0"))
