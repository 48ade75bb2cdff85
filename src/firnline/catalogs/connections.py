"""Opening a catalog's database: one side that can only read, one that can write, and neither creates anything. A third
one, for the first table of a new catalog, makes the file of a SQLite database.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from threading import Lock
from typing import Any, Literal
from urllib.parse import quote, unquote

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from firnline.errors import UsageError
from firnline.extras import how_to_get

Side = Literal["ro", "rw", "rwc"]

_WAIT_S = 30
_SILENT_S: dict[Side, float] = {"ro": 25.0, "rw": 30.0, "rwc": 30.0}
"""How long a server may say nothing while it is waited for. A change gets longer: its answer is worth more, for without
it nobody knows whether the change landed until that is read back.
"""
_CHECK = "check the uri in .pyiceberg.yaml; a relative path starts from the current folder"
_PORTS = {"postgresql": 5432}


class Connections:
    """The sides of one database, opened when first asked for."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._engines: dict[Side, sa.Engine] = {}
        self._lock = Lock()

    def reader(self) -> sa.Engine:
        return self._side("ro")

    def writer(self) -> sa.Engine:
        return self._side("rw")

    def maker(self) -> sa.Engine:
        """Returns the writing side of a database that may not be there yet. SQLite makes the file at the first use."""
        return self._side("rwc")

    def is_there(self) -> bool:
        """Tells whether SQLite has a file; a server is taken to have its database, and says so itself if not."""
        url = _url(self._uri)
        return url.get_backend_name() != "sqlite" or os.path.isfile(_file_of(url, self._uri))

    def close(self) -> None:
        with self._lock:
            for engine in self._engines.values():
                engine.dispose()
            self._engines.clear()

    def _side(self, side: Side) -> sa.Engine:
        url = _url(self._uri)
        if url.get_backend_name() == "sqlite":
            (require_folder if side == "rwc" else require_file)(url, self._uri)
        with self._lock:
            if side not in self._engines:
                self._engines[side] = _opened(url, side)
            return self._engines[side]


def shown(uri: str | sa.URL) -> str:
    """Returns the URI for people to read, without its password, nor what a query may hold of one."""
    return _url(uri).set(query={}).render_as_string(hide_password=True)


def database_of(uri: str) -> tuple[str, str, int | None, str, str]:
    """Returns what tells databases apart, by whichever user: two addresses of one may still be spelled differently."""
    url = _url(uri)
    if url.get_backend_name() == "sqlite":
        return "sqlite", "", None, os.path.realpath(_sqlite_path(url)), ""
    host, schema = (url.host or "").lower(), str(url.query.get("options", ""))
    return url.get_backend_name(), host, url.port or _PORTS.get(url.get_backend_name()), url.database or "", schema


def require_file(url: sa.URL, uri: str) -> None:
    """Raises UsageError where SQLite has no file yet: opening it would otherwise make an empty catalog."""
    path = _file_of(url, uri)
    if not os.path.isfile(path):
        raise UsageError(f"there is no catalog at {uri}: no file {os.path.abspath(path)}", _CHECK)


def require_folder(url: sa.URL, uri: str) -> None:
    """Raises UsageError where the folder of a SQLite file is missing: a misspelled one would not be noticed."""
    folder = os.path.dirname(os.path.abspath(_file_of(url, uri)))
    if not os.path.isdir(folder):
        raise UsageError(f"the catalog at {uri} cannot be made: no folder {folder}", f"make the folder, or {_CHECK}")


def _file_of(url: sa.URL, uri: str) -> str:
    path = _sqlite_path(url)
    if not path or path == ":memory:":
        raise UsageError(f"the catalog at {uri} lives in one process's memory", "name a SQLite file")
    return path


def _opened(url: sa.URL, side: Side) -> sa.Engine:
    try:
        if url.get_backend_name() == "sqlite":
            return sa.create_engine(_sqlite_url(url, side), poolclass=NullPool)
        return _heard(sa.create_engine(_with_driver(url), **_pool(url, side)), side)
    except ModuleNotFoundError as error:
        hint = how_to_get("postgres") if url.get_backend_name() == "postgresql" else f"pip install {error.name}"
        raise UsageError(f"{url.drivername} needs the package {error.name}", hint) from error


def _heard(engine: sa.Engine, side: Side) -> sa.Engine:
    """Returns the engine, which gives up a server that keeps silent where the driver is the one that firnline brings:
    another one's connections cannot be woken while they wait.
    """
    if engine.dialect.driver == "psycopg":
        from firnline.catalogs.listening import listen

        listen(engine, f"the database at {shown(engine.url)}", _SILENT_S[side])
    return engine


def _pool(url: sa.URL, side: Side) -> dict[str, Any]:
    """Returns how a server's connections are kept: few, looked at before use, and none that waits for ever."""
    options: dict[str, Any] = {
        "pool_size": 2,
        "max_overflow": 2,
        "pool_timeout": _WAIT_S,
        "pool_pre_ping": True,
        "pool_recycle": 1800,
    }
    if url.get_backend_name() == "postgresql":
        # The writing side says nothing: a database that its owner made read-only stays so.
        options["execution_options"] = {"postgresql_readonly": True} if side == "ro" else {}
        options["connect_args"] = {"connect_timeout": 10, "application_name": "firnline"}
    return options


def _with_driver(url: sa.URL) -> sa.URL:
    """Returns the address for psycopg, which firnline brings and listens through: settings often name psycopg2. That is
    used where it alone is here.
    """
    meant = url.drivername in ("postgresql", "postgresql+psycopg2")
    is_listened_to = find_spec("psycopg") is not None or find_spec("psycopg2") is None
    return url.set(drivername="postgresql+psycopg") if meant and is_listened_to else url


def _url(uri: str | sa.URL) -> sa.URL:
    try:
        return sa.make_url(uri)
    except ArgumentError:
        # Not the text itself: what is no address may still hold a password.
        raise UsageError(
            "the uri of the catalog is not that of a database", "such as sqlite:////lake/catalog.db"
        ) from None


def _sqlite_url(url: sa.URL, side: Side) -> sa.URL:
    """Returns the same database as a SQLite URI, whose mode keeps one side from writing and all but one from
    creating.
    """
    path = os.path.abspath(_sqlite_path(url))
    query = {"timeout": str(_WAIT_S), **url.query, "mode": side, "uri": "true"}
    return url.set(database="file:" + quote(path), query=query)


def _sqlite_path(url: sa.URL) -> str:
    database = url.database or ""
    return unquote(database.removeprefix("file:")) if database.startswith("file:") else database
