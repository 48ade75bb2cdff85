"""`python -m harness.servers.moto_app`: moto, whose conditional writes exclude each other.

moto looks whether an object is there and then writes it, on a thread for each request: of writers who race for one name
two may win, as no S3 lets them. The body is read before the lock is taken, so that a slow sender holds up nobody.

It also remembers what it would work out anew each time: which services there are, by a look into two hundred folders at
every request, and the time of each object that it lists, by a parser that takes any date in words. One server has the
requests of all test processes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from io import BytesIO
from threading import Lock
from typing import Any

from moto import backends, server
from moto.core import serialize
from moto.moto_server.werkzeug_app import DomainDispatcherApplication

_CONDITIONS = ("HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH")


class OneAtATime(DomainDispatcherApplication):
    """Passes requests on; those that write under a condition one after the other."""

    _turn = Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in ("GET", "HEAD") or not any(each in environ for each in _CONDITIONS):
            return super().__call__(environ, start_response)  # type: ignore[no-any-return]
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        with self._turn:
            return list(super().__call__({**environ, "wsgi.input": BytesIO(body)}, start_response))


def remember() -> None:
    """Makes moto keep its own answers to questions whose answer depends on nothing else."""
    services = tuple(backends.list_of_moto_modules())
    backends.list_of_moto_modules = lambda: services
    serialize.parse_to_aware_datetime = lru_cache(100_000)(serialize.parse_to_aware_datetime)  # type: ignore[attr-defined]


if __name__ == "__main__":
    remember()
    server.DomainDispatcherApplication = OneAtATime  # type: ignore[attr-defined]
    server.main()
