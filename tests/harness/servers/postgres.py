"""PostgreSQL: a cluster of its own that syncs nothing, with a database for whoever asks."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from harness.servers.process import HOST, Command, Missing, Server, program, running, tied

ROLE = "firnline"
_QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=32MB", "max_connections=600")


@contextmanager
def postgres(folder: Path) -> Iterator[Server]:
    """Yields a new cluster; `settings["uri"]` is what a SQL catalog takes. As root it runs as another user."""
    owner = _owner()
    # Not in `folder`: its parents may be closed to the user that the server runs as.
    data = Path(tempfile.mkdtemp(prefix="firnline-postgres-"))
    if owner is not None:
        os.chown(data, *owner)
    try:
        _initialise(data, owner, folder)
        command = Command("postgres", lambda port: _arguments(data, port), _answers, owner=owner, stop=signal.SIGINT)
        with running(command, folder) as (port, pid):
            url = _url(port, "postgres")
            yield Server("postgres", url, pid, {"uri": url})
    finally:
        shutil.rmtree(data, ignore_errors=True)


def make_database(server: Server, name: str) -> Server:
    """Makes an empty database. Returns the server with `settings["uri"]` pointing there."""
    execute(server, f'CREATE DATABASE "{name}"')
    url = server.url.rpartition("/")[0] + f"/{name}"
    return replace(server, url=url, settings={"uri": url})


def execute(server: Server, statement: str) -> None:
    """Runs one statement outside of any transaction."""
    engine = create_engine(server.url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()


def _program(name: str) -> str:
    # Debian keeps them out of PATH, one folder for each version; the newest comes first.
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parent.name))
    return program(name, "postgresql", folders)


def _owner() -> tuple[int, int] | None:
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return found.pw_uid, found.pw_gid
    raise Missing("PostgreSQL does not run as root, and there is no user postgres or nobody here")


def _initialise(data: Path, owner: tuple[int, int] | None, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    make = [_program("initdb"), "-D", str(data), "-U", ROLE, "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"]
    log = folder / "initdb.log"
    with log.open("ab") as said:
        failed = subprocess.run(tied(make, signal.SIGTERM, owner), stdout=said, stderr=said, cwd=data, check=False)
    if failed.returncode:
        raise RuntimeError(f"initdb failed:\n{log.read_text(errors='replace')[-2000:]}")


def _arguments(data: Path, port: int) -> list[str]:
    quick = [word for setting in _QUICK for word in ("-c", setting)]
    return [_program("postgres"), "-D", str(data), "-h", HOST, "-p", str(port), "-k", str(data), *quick]


def _url(port: int, database: str) -> str:
    return f"postgresql+psycopg://{ROLE}@{HOST}:{port}/{database}"


def _answers(port: int) -> bool:
    try:
        execute(Server("postgres", _url(port, "postgres"), 0), "SELECT 1")
        return True
    except OperationalError:
        return False
