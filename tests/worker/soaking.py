"""A lake that is written to all the time: Iceberg tables in a bucket behind a server that throttles and fails, Paimon
tables and Icechunk repositories in folders. What each snapshot held is written down, to be compared in the end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import icechunk
import pyarrow as pa
import yaml
import zarr
from pyiceberg.catalog import load_catalog

from harness.paimon.environment import Pypaimon
from harness.paimon.python_table import PythonTable
from harness.paimon.shapes import COLUMNS, Shape
from harness.servers.fixtures import unique
from harness.servers.process import Server
from harness.servers.s3 import make_bucket
from tests.stores.careless import Answer, Careless

_SLOW_DOWN = 503, b"<Error><Code>SlowDown</Code><Message>reduce your rate</Message></Error>"
_BROKEN = 500, b"<Error><Code>InternalError</Code><Message>again, please</Message></Error>"


@dataclass
class Weather:
    """Answers of a store that is in a bad mood: some requests are throttled, some fail, although they were done."""

    choice: random.Random
    share: float = 0.04

    def change(self, method: str, path: str, body: bytes, answer: Answer) -> Answer:
        drawn = self.choice.random()
        return answer if drawn > self.share else _SLOW_DOWN if drawn > self.share / 4 else _BROKEN


@dataclass
class IcebergTable:
    """A table in the bucket; what is read of each snapshot is what was there when it was written."""

    table: Any
    held: dict[int, list[int]] = field(default_factory=dict)

    def write(self, number: int) -> None:
        with suppress(Exception):  # another commit came first: a writer that asks again, and this one need not
            self.table.refresh().append(pa.table({"x": pa.array([number], pa.int64())}))
            current = self.table.current_snapshot().snapshot_id
            self.held[current] = self._read(current)

    def _read(self, snapshot: int) -> list[int]:
        return sorted(self.table.scan(snapshot_id=snapshot).to_arrow()["x"].to_pylist())

    def refuse_lost(self) -> None:
        """Raises AssertionError unless every snapshot that is left reads as it did."""
        for each in self.table.refresh().snapshots():
            read = self._read(each.snapshot_id)
            assert read == self.held.get(each.snapshot_id, read)


@dataclass
class PaimonTable:
    """A table of pypaimon, which serves one request at a time."""

    process: Pypaimon
    folder: Path
    lock: Any
    rows: int = 0

    def create(self) -> None:
        PythonTable(self.process, self.folder).create(Shape("python", False, (), {"bucket": "-1"}))

    def write(self, number: int) -> None:
        row = tuple(number if name == "k" else None for name in COLUMNS)
        with self.lock, suppress(Exception):
            PythonTable(self.process, self.folder).write("main", [row])
            self.rows += 1

    def refuse_lost(self) -> None:
        from harness.paimon.rows import python_rows

        with self.lock:
            read = python_rows(self.process, self.folder)
        assert max(len(rows) for rows in read.values()) == self.rows


@dataclass
class IcechunkTable:
    """A repository of one array, whose value is the number of its last commit."""

    folder: Path
    held: dict[str, int] = field(default_factory=dict)

    def _open(self) -> Any:
        return icechunk.Repository.open(icechunk.local_filesystem_storage(str(self.folder)))

    def create(self) -> None:
        repo = icechunk.Repository.create(icechunk.local_filesystem_storage(str(self.folder)))
        session = repo.writable_session("main")
        zarr.group(session.store).create_array("x", shape=(64,), chunks=(16,), dtype="i8")
        session.commit("made")

    def write(self, number: int) -> None:
        with suppress(icechunk.IcechunkError, icechunk.ConflictError):
            session = self._open().writable_session("main")
            zarr.open_group(session.store)["x"][:] = number
            self.held[session.commit(str(number))] = number

    def refuse_lost(self) -> None:
        repo = self._open()
        for each in repo.ancestry(branch="main"):
            if each.id in self.held:
                store = repo.readonly_session(snapshot_id=each.id).store
                assert int(zarr.open_group(store, mode="r")["x"][5]) == self.held[each.id]


AnyTable = IcebergTable | PaimonTable | IcechunkTable


def soaked_lake(folder: Path, server: Server, bad: Careless, process: Pypaimon, tables: int) -> dict[str, AnyTable]:
    """Returns the tables of a new lake, by the names that firnline has for them: two fifths are in the bucket, and as
    many in folders of Paimon.
    """
    bucket = make_bucket(server, unique("soak"))
    where = {"type": "sql", "uri": f"sqlite:///{folder}/lake.db", "warehouse": f"{bucket}/warehouse"}
    theirs = load_catalog("lake", **where, **server.settings)
    theirs.create_namespace("db")
    settings = {"catalog": {"lake": {**where, **server.settings, "s3.endpoint": bad.url}}}
    (folder / ".pyiceberg.yaml").write_text(yaml.safe_dump(settings))
    made: dict[str, AnyTable] = {}
    lock = Lock()
    for number in range(tables):
        if number % 5 < 2:
            table = theirs.create_table(f"db.t{number}", schema=pa.schema([("x", pa.int64())]))
            made[f"lake.db.t{number}"] = IcebergTable(table)
        elif number % 5 < 4:
            made[str(folder / f"p{number}")] = PaimonTable(process, folder / f"p{number}", lock)
        else:
            made[str(folder / f"c{number}")] = IcechunkTable(folder / f"c{number}")
    for each in made.values():
        if not isinstance(each, IcebergTable):
            each.create()
        each.write(0)
    return made


@contextmanager
def written_to(tables: dict[str, AnyTable], choice: random.Random, threads: int = 2) -> Iterator[Callable[[], int]]:
    """Writes to random tables until the block ends; yields how many commits were tried so far."""
    stop, tried = Event(), list[int]()

    def write(own: random.Random) -> None:
        while not stop.wait(own.uniform(0.02, 0.3)):
            tried.append(1)
            own.choice(list(tables.values())).write(len(tried))

    writers = [Thread(target=write, args=(random.Random(choice.random()),)) for _ in range(threads)]
    for each in writers:
        each.start()
    try:
        yield lambda: len(tried)
    finally:
        stop.set()
        for each in writers:
            each.join()
