"""Lists of files as numbered Parquet objects: bounded in memory when written and when read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from firnline.errors import AlreadyExists, UnreadableMetadata
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


Seals = dict[str, str]
"""Parts by name, each with the digest of its bytes: a part that was changed, lost or added since is noticed."""


def seal(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def part_prefix(place: int, searched: bool = False) -> str:
    """Returns how parts of a kind begin, by its place in the order of deletion. One digit for each place: names of
    parts are sorted as text, and two formats together have more than ten kinds. What was searched for has a letter
    before it that is no digit, and so comes last.
    """
    return f"{'s' if searched else ''}{place:x}-"


class PartWriter:
    """Collects rows and writes them as parts of at most PART_ROWS rows, named `PREFIX00000.parquet` and on."""

    def __init__(self, store: PutAndGet, folder: str, prefix: str = "") -> None:
        self._store = store
        self._folder = folder
        self._prefix = prefix
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self.seals: Seals = {}

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
        name = f"{self._prefix}{len(self.seals):05d}.parquet"
        data = as_parquet(pa.Table.from_batches(self._waiting))
        put_own(self._store, join(self._folder, name), data)
        self.seals[name] = seal(data)
        self._waiting, self._rows = [], 0


def as_parquet(table: pa.Table) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def read_part(store: Get, key: str, sealed: str | None = None) -> pa.Table:
    """Returns the part's rows. Raises UnreadableMetadata where its bytes are not those that were sealed.

    Read without threads of Arrow's: one that lets go of the bytes while a program ends would abort it.
    """
    import pyarrow as pa
    import pyarrow.parquet

    data = store.get(key)
    if sealed is not None and seal(data) != sealed:
        raise UnreadableMetadata(f"{key} is not as it was written", hint="the run's record was changed")
    try:
        return pyarrow.parquet.ParquetFile(pa.BufferReader(data), pre_buffer=False).read(use_threads=False)
    except (pa.ArrowException, OSError) as damage:
        raise UnreadableMetadata(f"{key} is damaged: {damage}", hint="restore the run's record") from damage


def refuse_changed_parts(store: ListAndGet, folder: str, seals: Seals) -> None:
    """Raises UnreadableMetadata unless the folder holds exactly the sealed parts, each as it was written."""
    found = {key.rpartition("/")[2]: key for key in part_keys(store, folder)}
    if found.keys() != seals.keys():
        odd = ", ".join(sorted(found.keys() ^ seals.keys()))
        raise UnreadableMetadata(f"the parts in {folder} are not those that were written: {odd}", hint=CHANGED)
    for name, key in found.items():
        if seal(store.get(key)) != seals[name]:
            raise UnreadableMetadata(f"{key} is not as it was written", hint=CHANGED)


CHANGED = "the run's record was changed; nothing was deleted, and `firnline undo` still works before a purge"


def part_keys(store: List, folder: str) -> list[str]:
    """Returns the parts in a folder, in order."""
    return sorted(each.key for each in store.list(folder) if each.key.endswith(".parquet"))


def read_sound_parts(store: ListAndGet, folder: str, seals: Seals) -> Iterator[pa.Table]:
    """Yields the parts that are as they were written, and leaves out the others."""
    for key in part_keys(store, folder):
        with suppress(UnreadableMetadata):
            yield read_part(store, key, seals.get(key.rpartition("/")[2], "unknown"))


def write_parts(store: PutAndGet, folder: str, batches: Iterable[pa.RecordBatch], prefix: str = "") -> None:
    writer = PartWriter(store, folder, prefix)
    for batch in batches:
        writer.add(batch)
    writer.flush()
