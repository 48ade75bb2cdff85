"""An HTTP listener for catalogs that tell of commits. What a message says is never published: it only names tables, and
the catalog is asked.

    POST /  {"table": "lake.sales.customer"}
    POST /  {"tables": ["lake.sales.customer", "lake.sales.orders"]}

The answer says what became of each pointer. A message without the token, where there is one, is refused.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Timer
from typing import Any

from firnline.app.pointers.verbs import LakePointers, SyncedTable
from firnline.errors import FirnlineError, UsageError
from firnline.model.names import is_location
from firnline.ports.catalogs import TableName

LARGEST_MESSAGE = 64 * 1024
MOST_TABLES = 100
MOST_CLIENTS = 32
_MOST_DIGITS = 10
"""Of a length: Python does not read a number of thousands."""
_SLOWEST_S = 10
"""For a whole message: a client that sends a byte now and then holds a thread no longer than one that sends nothing."""

Tell = Callable[[SyncedTable], None]
"""Is told of each table that a message named, from whichever thread."""


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer: a status of HTTP, and what to say."""

    status: int
    facts: dict[str, Any]


def hear(pointers: LakePointers, message: bytes, tell: Tell) -> Heard:
    """Returns what became of the tables that a message names. Whatever is wrong with it is an answer, too."""
    try:
        names = _names(message)
    except UsageError as problem:
        return Heard(400, {"error": problem.to_json()})
    done: list[dict[str, Any]] = []
    status = 200
    for each in names:
        try:
            synced = pointers.publish_one(_table(pointers, each))
            tell(synced)
            done.append(synced.to_json())
            status = 409 if synced.problems else status
        except FirnlineError as problem:
            done.append({"table": each, "pointers": [], "error": problem.to_json()})
            status = 404
    return Heard(status, {"tables": done})


def _table(pointers: LakePointers, text: str) -> TableName:
    """Returns the table of a catalog that is meant. Raises UsageError for a place: a message must not make us read any
    file of this machine, or any bucket that we have keys for.
    """
    if is_location(text):
        raise UsageError(f"{text[:200]!r} is no table of a catalog", hint=_SHAPE)
    return pointers.places.catalogs.name_of(text)


def _names(message: bytes) -> list[str]:
    try:
        found = json.loads(message)
        json.dumps(found, ensure_ascii=False).encode()  # half of a character is JSON, and no table's name
    except (ValueError, RecursionError):
        raise UsageError("the message is not JSON", hint=_SHAPE) from None
    named = found.get("tables", [found.get("table")]) if isinstance(found, dict) else None
    if not isinstance(named, list) or not named or not all(isinstance(each, str) and each for each in named):
        raise UsageError("the message names no table", hint=_SHAPE)
    if len(named) > MOST_TABLES:
        raise UsageError(f"the message names {len(named)} tables, and may name {MOST_TABLES}", hint="send several")
    return list(dict.fromkeys(named))


_SHAPE = 'write {"table": "CATALOG.NAMESPACE.NAME"}'


def listener(pointers: LakePointers, host: str, port: int, token: str | None, tell: Tell) -> ThreadingHTTPServer:
    """Returns a server that is bound and not yet serving. Raises UsageError for an address that others can reach, if
    there is no token, or an empty one: a stranger could keep the catalog busy.
    """
    if not token and not _is_local(host):
        raise UsageError(
            f"{host} can be reached from outside, and there is no token",
            hint="set FIRNLINE_LISTEN_TOKEN, or use 127.0.0.1",
        )

    class Handler(_Handler):
        allowed = staticmethod(lambda given: not token or hmac.compare_digest(given.encode(), token.encode()))
        answer = staticmethod(lambda message: hear(pointers, message, tell))

    try:
        return _Server((host, port), Handler)
    except OSError as error:
        raise UsageError(f"cannot listen at {host}:{port}: {error.strerror}", hint="choose another --port") from error


def _is_local(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Server(ThreadingHTTPServer):
    """Serves so many clients at once; further ones find the door shut, and may come again."""

    def __init__(self, *bound: Any) -> None:
        self._places = BoundedSemaphore(MOST_CLIENTS)
        super().__init__(*bound)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()


class _Handler(BaseHTTPRequestHandler):
    """One message for each connection."""

    allowed: Callable[[str], bool]
    answer: Callable[[bytes], Heard]
    timeout = _SLOWEST_S
    server_version = "firnline"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self._end = Timer(_SLOWEST_S, self._stop_reading)
        self._end.daemon = True
        self._end.start()

    def finish(self) -> None:
        self._end.cancel()
        super().finish()

    def _stop_reading(self) -> None:
        with suppress(OSError):  # the client may be gone
            self.connection.shutdown(socket.SHUT_RD)

    def do_POST(self) -> None:
        self._say(self._heard())

    def _heard(self) -> Heard:
        if not self.allowed(self.headers.get("Authorization", "").removeprefix("Bearer ")):
            return _refused(401, "the token is missing or wrong")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            return _refused(411, "the message has no length")
        if len(length) > _MOST_DIGITS or int(length) > LARGEST_MESSAGE:
            return _refused(413, f"a message has at most {LARGEST_MESSAGE} bytes")
        message = self.rfile.read(int(length))
        return self.answer(message) if len(message) == int(length) else _refused(408, "the message did not come whole")

    def _say(self, heard: Heard) -> None:
        body = json.dumps(heard.facts).encode()
        self.send_response(heard.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: what is published is told of by `tell`."""


def _refused(status: int, why: str) -> Heard:
    return Heard(status, {"error": {"kind": "refused", "message": why, "hint": ""}})
