"""A proxy in front of an S3 or REST server that fails as networks and busy stores do, and counts what it did.

    with proxy(server.url) as faulty:
        faulty.rules = [Rule("busy", share=0.3), Rule("drop", when=commits, times=1)]

It passes the Host header on, so that signatures hold. Every connection carries one request: the next one is new.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from harness.servers.process import HOST

Fault = Literal["busy", "expired", "cut", "delay", "drop"]
When = Callable[[str, str], bool]
_REFUSALS = {
    "busy": ("503 Slow Down", "SlowDown", "Please reduce your request rate."),
    "expired": ("400 Bad Request", "ExpiredToken", "The provided token has expired."),
}
# Between a client and this proxy, or this proxy and the server: not part of what is signed.
_OWN = (b"connection", b"expect", b"keep-alive")
_LIMIT = 64 * 1024 * 1024


def _always(method: str, path: str) -> bool:
    return True


@dataclass
class Rule:
    """One kind of failure, for a share of the requests that `when(method, path)` picks, at most `times` of them.

    busy: 503 SlowDown, the server never sees the request; expired: the same with 400 ExpiredToken. cut: the connection
    ends before the server sees it.
    delay: passed on after `seconds`. drop: the server does it, and its answer never arrives.
    """

    fault: Fault
    share: float = 1.0
    when: When = _always
    times: int | None = None
    seconds: float = 2.0

    def strikes(self, method: str, path: str, chance: float) -> bool:
        """Returns whether this request fails so; `times` counts down with each."""
        if self.times == 0 or not self.when(method, path) or chance >= self.share:
            return False
        if self.times is not None:
            self.times -= 1
        return True


@dataclass
class Proxy:
    """A running proxy. `rules` may be replaced at any moment; the first that strikes decides, after all delays."""

    url: str
    rules: list[Rule] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    seen: list[tuple[str, str, str]] = field(default_factory=list)
    """Every request in order: what happened to it (passed or a fault), its method, its path."""


@contextmanager
def proxy(target: str, seed: int = 0) -> Iterator[Proxy]:
    """Yields a proxy to `target`, in a thread of this process."""
    loop = asyncio.new_event_loop()
    relay = _Relay(urlsplit(target).netloc, random.Random(seed))
    listener = loop.run_until_complete(asyncio.start_server(relay.connection, HOST, 0, limit=_LIMIT))
    relay.proxy.url = f"http://{HOST}:{listener.sockets[0].getsockname()[1]}"
    thread = threading.Thread(target=loop.run_forever, daemon=True, name="fault proxy")
    thread.start()
    try:
        yield relay.proxy
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=10)
        listener.close()  # only when the loop's own thread is done with it: a connection that ends closes it too
        _close(loop)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left))
    loop.close()


class _Relay:
    def __init__(self, target: str, chances: random.Random) -> None:
        host, _, port = target.partition(":")
        self._target = (host, int(port))
        self._chances = chances
        self.proxy = Proxy("")

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carries one request and ends the connection."""
        with suppress(OSError, asyncio.IncompleteReadError):
            request = await _request(reader, writer)
            method, path = request.split(b" ", 2)[:2]
            await self._treat(method.decode(), path.decode(), request, writer)
        writer.close()

    async def _treat(self, method: str, path: str, request: bytes, writer: asyncio.StreamWriter) -> None:
        fate = await self._fate(method, path)
        self.proxy.counts[fate] += 1
        self.proxy.seen.append((fate, method, path))
        if fate in _REFUSALS:
            writer.write(_refusal(fate, method))
            await writer.drain()
        elif fate == "cut":
            writer.transport.abort()
        else:
            answer = await self._forward(request)
            if fate == "drop":
                writer.transport.abort()
                return
            writer.write(answer)
            await writer.drain()

    async def _fate(self, method: str, path: str) -> str:
        for rule in list(self.proxy.rules):
            if rule.strikes(method, path, self._chances.random()):
                if rule.fault != "delay":
                    return rule.fault
                self.proxy.counts["delay"] += 1
                await asyncio.sleep(rule.seconds)
        return "passed"

    async def _forward(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*self._target)
        try:
            writer.write(request)
            await writer.drain()
            return await reader.read()
        finally:
            writer.close()


def _refusal(fate: str, method: str) -> bytes:
    status, code, message = _REFUSALS[fate]
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
    head = f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n{'' if method == 'HEAD' else body}".encode()


async def _request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Returns the whole request, with a head that asks the server to end the connection after its answer."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).rstrip().split(b"\r\n")
    headers = {line.partition(b":")[0].strip().lower(): line.partition(b":")[2].strip() for line in lines}
    if b"expect" in headers:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = await _body(reader, headers)
    kept = [line for line in lines if line.partition(b":")[0].strip().lower() not in _OWN]
    return b"\r\n".join([first, *kept, b"Connection: close", b"", body])


async def _body(reader: asyncio.StreamReader, headers: dict[bytes, bytes]) -> bytes:
    if headers.get(b"transfer-encoding", b"").lower() != b"chunked":
        return await reader.readexactly(int(headers.get(b"content-length", b"0")))
    parts: list[bytes] = []
    size = -1
    while size:
        parts.append(await reader.readuntil(b"\r\n"))
        size = int(parts[-1].split(b";")[0], 16)
        parts.append(await reader.readexactly(size + 2) if size else b"")
    while parts[-1] != b"\r\n":
        parts.append(await reader.readuntil(b"\r\n"))
    return b"".join(parts)
