"""A local port that answers `/metrics` and `/healthz`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from firnline.errors import UsageError
from firnline.observing.metrics import CONTENT_TYPE, Metrics

HOME = "127.0.0.1"
_SLOWEST_S = 5.0
_HIGHEST_PORT = 65_535
_OK, _MISSING, _UNWELL = 200, 404, 503


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a process does its work, and what to know about it."""

    is_well: bool
    facts: Mapping[str, Any] = field(default_factory=dict)


Answer = tuple[int, str, bytes]


def parse_listen(text: str) -> tuple[str, int]:
    """Returns host and port of `PORT`, `HOST:PORT` or `[HOST]:PORT`; without a host, of this machine alone. Raises
    UsageError.
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not port.isascii() or int(port) > _HIGHEST_PORT:
        raise UsageError(f"not a place to listen at: {text!r}", hint="write PORT or HOST:PORT, such as 127.0.0.1:9464")
    return host.strip("[]") or HOME, int(port)


@contextmanager
def serve(listen: str, metrics: Metrics, healthy: Callable[[], Health]) -> Iterator[str]:
    """Answers for the time of the block; hands out HOST:PORT as it is listened at. Raises UsageError where that cannot
    be. Port 0 takes any that is free.
    """
    host, port = parse_listen(listen)
    try:
        server = _Server((host, port), _handler(metrics, healthy))
    except OSError as problem:
        raise UsageError(f"cannot listen at {host}:{port}: {problem.strerror}", hint="name another port") from problem
    thread = Thread(target=server.serve_forever, name="firnline-metrics", daemon=True)
    thread.start()
    try:
        yield f"{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(_SLOWEST_S)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a client that does not go away must not keep the process

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away in the middle is nothing to tell of."""


def _handler(metrics: Metrics, healthy: Callable[[], Health]) -> type[BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        timeout = _SLOWEST_S
        server_version = "firnline"
        sys_version = ""

        def do_GET(self) -> None:
            code, kind, body = answer(self.path.partition("?")[0], metrics, healthy)
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *said: Any) -> None:
            """Requests are not logged: there is one every few seconds."""

    return Answering


def answer(path: str, metrics: Metrics, healthy: Callable[[], Health]) -> Answer:
    """Returns what a path answers: status, type and body."""
    if path == "/metrics":
        return _OK, CONTENT_TYPE, metrics.text().encode()
    if path == "/healthz":
        health = _asked(healthy)
        body = json.dumps({"ok": health.is_well, **health.facts}).encode()
        return (_OK if health.is_well else _UNWELL), "application/json", body
    return _MISSING, "text/plain; charset=utf-8", b"ask for /metrics or /healthz\n"


def _asked(healthy: Callable[[], Health]) -> Health:
    try:
        return healthy()
    except Exception as problem:
        return Health(False, {"error": type(problem).__name__})
