"""Whether a server says a word at all. One that hangs accepts connections, and clients ask it again for minutes."""

from __future__ import annotations

import logging
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from urllib.parse import SplitResult, urlsplit

from firnline.errors import Unreachable

CONNECTS_WITHIN_S = 10.0
"""A connection takes milliseconds, and seconds where packets are lost: two of them may be, each sent anew."""

ANSWERS_WITHIN_S = 20.0
IS_TOLD_AFTER_S = 3.0
IS_SILENT_FOR_S = 30.0
_IS_TOLD_ANEW_AFTER_S = 30.0
_HEARD_OUT_S = 0.5
_HINT = "is it overloaded or stopped, or does a firewall keep it? check its address; then try again"
_PIECE, _MOST_PIECES = 4096, 16
_UNKNOWN = "was not asked yet"
_WORD = b"OPTIONS * HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"


_asked: dict[str, tuple[float, str]] = {}
"""Until when it is known of each address how it does not answer; an empty text where it does."""

_told: dict[str, float] = {}


def refuse_silent(address: str, what: str) -> None:
    """Raises Unreachable where a server takes no connection, or takes one and then says nothing in time. One that
    answered is not asked again, and one that did not only after a while: many tables may lie behind it.
    """
    until_s, fails = _asked.get(address, (0.0, _UNKNOWN))
    if fails and time.monotonic() >= until_s:
        with told(what):
            fails = _failure_of(address)
        _asked[address] = time.monotonic() + IS_SILENT_FOR_S, fails
    if fails:
        raise Unreachable(f"{what} {fails}", _HINT)


def forget(address: str) -> None:
    """Lets a server be asked for a word again, before the next request: it left one without an answer."""
    _asked.pop(address, None)


@contextmanager
def told(what: str) -> Iterator[None]:
    """Says what is waited for, where what is done here takes long."""
    timer = Timer(IS_TOLD_AFTER_S, tell, (what,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def tell(what: str, why: str = "has not answered yet") -> None:
    """Says what is waited for, unless that was just said: many tables may wait for one server."""
    if time.monotonic() >= _told.get(what, 0.0):
        _told[what] = time.monotonic() + _IS_TOLD_ANEW_AFTER_S
        logging.getLogger("firnline").warning("waiting for %s, which %s", what, why)


def _failure_of(address: str) -> str:
    """Returns how a server fails to say a word; nothing where it says one, or cannot be asked like this.

    Every other failure is left to the client, which knows its name. Any word will do: a refusal is one. Behind a proxy
    nothing is asked, for it would answer itself.
    """
    ends_s = time.monotonic() + ANSWERS_WITHIN_S
    try:
        at = urlsplit(address)
        if at.scheme not in ("http", "https") or not at.hostname or _is_behind_proxy(at):
            return ""
        try:
            connection = _connected(at, at.hostname)
        except TimeoutError:
            return f"takes no connection within {CONNECTS_WITHIN_S:g} s"
        with connection:
            connection.settimeout(max(0.1, ends_s - time.monotonic()))
            _listen(connection, at)
    except TimeoutError:
        return f"does not answer within {ANSWERS_WITHIN_S:g} s"
    except (OSError, ValueError):
        return ""
    return ""


def _connected(at: SplitResult, host: str) -> socket.socket:
    """Returns a connection to the first address of a server that takes one. Raises TimeoutError where none does in
    time: they share it, for a name may have eight of them, and packets to all may be dropped.
    """
    port = at.port or _usual(at)
    addresses = {each[4][0] for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    return socket.create_connection((host, port), timeout=CONNECTS_WITHIN_S / max(1, len(addresses)))


def _listen(connection: socket.socket, at: SplitResult) -> None:
    """Ends once a byte came, of what is said in secret or after a first word of ours. Raises TimeoutError where none
    does.
    """
    if at.scheme == "https":
        context = ssl.create_default_context()
        with context.wrap_socket(connection, server_hostname=at.hostname, do_handshake_on_connect=False) as secret:
            secret.do_handshake()
        return
    connection.sendall(_WORD % (at.hostname or "").encode("idna"))
    connection.recv(1)
    _hear_out(connection)


def _hear_out(connection: socket.socket) -> None:
    """Reads what else is said, up to a bound: a server whose words are cut off notes a failure."""
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
