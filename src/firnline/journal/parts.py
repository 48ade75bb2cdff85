"""Lists of files as numbered Parquet objects: bounded in memory when written and when read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from firnline.errors import AlreadyExists
from firnline.model.locations import join
from firnline.ports.stores import Get, List, PutIfAbsent

if TYPE_CHECKING:
    import pyarrow as pa

PART_ROWS = 10_000


class ListAndGet(Get, List, Protocol):
    pass


class PutAndGet(Get, PutIfAbsent, Protocol):
    pass


def put_own(store: PutAndGet, key: str, data: bytes) -> None:
    """Writes an object that only this process can be writing.

    A request that was sent twice meets its own first write: the same bytes are no one else's.
    """
    try:
        store.put_if_absent(key, data)
    except AlreadyExists:
        if store.get(key) != data:
            raise


class PartWriter:
    """Collects rows and writes them as parts of at most PART_ROWS rows, named `PREFIX00000.parquet` and on."""

    def __init__(self, store: PutAndGet, folder: str, prefix: str = "") -> None:
        self._store = store
        self._folder = folder
        self._prefix = prefix
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._written = 0

    def add(self, batch: pa.RecordBatch) -> None:
        while len(batch):
            room = PART_ROWS - self._rows
            self._waiting.append(batch.slice(0, room))
            self._rows += len(self._waiting[-1])
            batch = batch.slice(room)
            if self._rows == PART_ROWS:
                self.flush()

    def flush(self) -> None:
        """Writes what is waiting; nothing where nothing is."""
        import pyarrow as pa

        if not self._rows:
            return
        name = f"{self._prefix}{self._written:05d}.parquet"
        put_own(self._store, join(self._folder, name), as_parquet(pa.Table.from_batches(self._waiting)))
        self._waiting, self._rows, self._written = [], 0, self._written + 1


def as_parquet(table: pa.Table) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def read_part(store: Get, key: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet

    return pyarrow.parquet.read_table(pa.BufferReader(store.get(key)))


def part_keys(store: List, folder: str) -> list[str]:
    """Returns the parts in a folder, in order."""
    return sorted(each.key for each in store.list(folder) if each.key.endswith(".parquet"))


def read_parts(store: ListAndGet, folder: str) -> Iterator[pa.Table]:
    return (read_part(store, key) for key in part_keys(store, folder))


def write_parts(store: PutAndGet, folder: str, batches: Iterable[pa.RecordBatch], prefix: str = "") -> None:
    writer = PartWriter(store, folder, prefix)
    for batch in batches:
        writer.add(batch)
    writer.flush()
