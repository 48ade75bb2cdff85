"""Opening a catalog's database: one side that can only read, one that can write, and neither creates
anything.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import Literal
from urllib.parse import quote, unquote

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from firnline.errors import UsageError

_WAIT_S = 30

Side = Literal["ro", "rw"]


class Connections:
    """The two sides of one database, opened when first asked for."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._engines: dict[Side, sa.Engine] = {}
        self._lock = Lock()

    def reader(self) -> sa.Engine:
        return self._side("ro")

    def writer(self) -> sa.Engine:
        return self._side("rw")

    def close(self) -> None:
        with self._lock:
            for engine in self._engines.values():
                engine.dispose()
            self._engines.clear()

    def _side(self, side: Side) -> sa.Engine:
        url = _url(self._uri)
        if url.get_backend_name() == "sqlite":
            require_file(url, self._uri)
        with self._lock:
            if side not in self._engines:
                self._engines[side] = _opened(url, side)
            return self._engines[side]


def shown(uri: str) -> str:
    """Returns the URI for people to read, without its password."""
    return _url(uri).render_as_string(hide_password=True)


def require_file(url: sa.URL, uri: str) -> None:
    """Raises UsageError where SQLite has no file yet: opening it would otherwise make an empty catalog."""
    path = _sqlite_path(url)
    if not path or path == ":memory:":
        raise UsageError(f"the catalog at {uri} lives in one process's memory", "name a SQLite file")
    if not os.path.isfile(path):
        raise UsageError(
            f"there is no catalog at {uri}: no file {os.path.abspath(path)}",
            "check the uri in .pyiceberg.yaml; a relative path starts from the current folder",
        )


def _opened(url: sa.URL, side: Side) -> sa.Engine:
    try:
        if url.get_backend_name() == "sqlite":
            return sa.create_engine(_sqlite_url(url, side), poolclass=NullPool)
        return sa.create_engine(
            url,
            pool_size=2,
            max_overflow=2,
            pool_pre_ping=True,
            execution_options={"postgresql_readonly": side == "ro"},
        )
    except ModuleNotFoundError as error:
        raise UsageError(f"{url.drivername} needs the package {error.name}", f"pip install {error.name}") from error


def _url(uri: str) -> sa.URL:
    try:
        return sa.make_url(uri)
    except ArgumentError as error:
        raise UsageError(f"{uri!r} is not the uri of a database", "such as sqlite:////lake/catalog.db") from error


def _sqlite_url(url: sa.URL, side: Side) -> sa.URL:
    """Returns the same database as a SQLite URI, whose mode keeps one side from writing and both from
    creating.
    """
    path = os.path.abspath(_sqlite_path(url))
    query = {"timeout": str(_WAIT_S), **url.query, "mode": side, "uri": "true"}
    return url.set(database="file:" + quote(path), query=query)


def _sqlite_path(url: sa.URL) -> str:
    database = url.database or ""
    return unquote(database.removeprefix("file:")) if database.startswith("file:") else database
