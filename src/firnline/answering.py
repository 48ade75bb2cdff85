"""Whether a server says a word at all. One that hangs accepts connections, and clients ask it again for minutes."""

from __future__ import annotations

import logging
import socket
import ssl
import time
from contextlib import suppress
from functools import partial
from urllib.parse import SplitResult, urlsplit

from firnline.errors import Unreachable

ANSWERS_WITHIN_S = 20.0
_IS_TOLD_AFTER_S = 3.0
_IS_SILENT_FOR_S = 30.0
_HEARD_OUT_S = 0.5
_HINT = "is it overloaded or stopped, or does a firewall keep it? check its address; then try again"
_PIECE, _MOST_PIECES = 4096, 16
_WORD = b"OPTIONS * HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"


_asked: dict[str, tuple[float, bool]] = {}


def refuse_silent(address: str, what: str) -> None:
    """Raises Unreachable where a server accepts a connection and then says nothing in time. One that answered is not
    asked again, and one that did not only after a while: many tables may lie behind it.
    """
    until_s, is_silent = _asked.get(address, (0.0, True))
    if is_silent and time.monotonic() >= until_s:
        is_silent = not _answers(address, what)
        _asked[address] = time.monotonic() + _IS_SILENT_FOR_S, is_silent
    if is_silent:
        raise Unreachable(f"{what} does not answer within {ANSWERS_WITHIN_S:g} s", _HINT)


def _answers(address: str, what: str) -> bool:
    """Tells whether a server says a word, or cannot be asked like this.

    Every other failure is left to the client, which knows its name. Any word will do: a refusal is one. Behind a proxy
    nothing is asked, for it would answer itself.
    """
    try:
        at = urlsplit(address)
        if at.scheme not in ("http", "https") or not at.hostname or _is_behind_proxy(at):
            return True
        with _connected(at) as connection:
            _listen(connection, what)
    except TimeoutError:
        return False
    except (OSError, ValueError):
        return True
    return True


def _connected(at: SplitResult) -> socket.socket:
    """Returns a connection that was sent its first word; an encrypted one will send it when it is waited for."""
    connection = socket.create_connection((at.hostname, at.port or _usual(at)), timeout=ANSWERS_WITHIN_S)
    if at.scheme == "http":
        connection.sendall(_WORD % (at.hostname or "").encode("idna"))
        return connection
    context = ssl.create_default_context()
    return context.wrap_socket(connection, server_hostname=at.hostname, do_handshake_on_connect=False)


def _listen(connection: socket.socket, what: str) -> None:
    """Ends once a byte came. Raises TimeoutError where none does, after it told that it waits."""
    word = connection.do_handshake if isinstance(connection, ssl.SSLSocket) else partial(connection.recv, 1)
    connection.settimeout(_IS_TOLD_AFTER_S)
    try:
        word()
    except TimeoutError:
        logging.getLogger("firnline").warning("waiting for %s, which has not answered yet", what)
        connection.settimeout(ANSWERS_WITHIN_S - _IS_TOLD_AFTER_S)
        word()
    _hear_out(connection)


def _hear_out(connection: socket.socket) -> None:
    """Reads what else is said, up to a bound: a server whose words are cut off notes a failure. One that speaks in
    secret waits for a request now.
    """
    if isinstance(connection, ssl.SSLSocket):
        return
    connection.settimeout(_HEARD_OUT_S)
    with suppress(OSError):
        for _ in range(_MOST_PIECES):
            if not connection.recv(_PIECE):
                return


def _usual(at: SplitResult) -> int:
    return 443 if at.scheme == "https" else 80


def _is_behind_proxy(at: SplitResult) -> bool:
    from urllib.request import getproxies, proxy_bypass

    return bool({at.scheme, "all"} & getproxies().keys()) and not proxy_bypass(at.hostname or "")
