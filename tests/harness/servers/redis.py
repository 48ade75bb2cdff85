"""Redis: a cache that keeps nothing on disk."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.servers.process import HOST, Command, Server, program, running


@contextmanager
def redis(folder: Path, *, memory: str = "64mb") -> Iterator[Server]:
    """Yields an empty Redis that refuses to write beyond `memory`; `settings["url"]` is what a client takes."""
    redis_server = program("redis-server", "redis-server")

    def arguments(port: int) -> list[str]:
        small = ["--save", "", "--appendonly", "no", "--maxmemory", memory, "--maxmemory-policy", "noeviction"]
        return [redis_server, "--bind", HOST, "--port", str(port), "--dir", str(folder), *small]

    with running(Command("redis", arguments, _answers), folder) as (port, pid):
        url = f"redis://{HOST}:{port}/0"
        yield Server("redis", url, pid, {"url": url})


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False
