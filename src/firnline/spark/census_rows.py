"""The rows of censuses, brought here from the cluster: of one table as they stream, of many by way of a disk.

A job for each of a thousand tables would look through the objects of all each time. So what all of them ask for comes
once, sorted by table, and waits on a disk of this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firnline.model.files import FileKind
from firnline.ports.engines import FILE_COLUMNS
from firnline.ports.listings import VICTIM_COLUMNS, ObjectClass
from firnline.spark.streaming import described, on_a_disk, refuse_others, streamed

OF_ALL = -1
"""Stands for the search of units that count for all."""


@dataclass(frozen=True, slots=True)
class OnCluster:
    """Rows that stay on the cluster until nobody holds this any more."""

    objects: DataFrame
    opened: DataFrame
    of: str

    def victims(self, search: int, count: int) -> Iterator[pa.RecordBatch]:
        victims = self.objects.filter(F.col("class") == ObjectClass.VICTIM.value)
        return streamed(victims.select(*VICTIM_COLUMNS), count, self.of)

    def documents(self, search: int, count: int) -> Iterator[pa.RecordBatch]:
        documents = self.objects.filter(is_document()).select(*VICTIM_COLUMNS)
        return streamed(documents, count, self.of, in_order=("identity",))

    def units(self, search: int, count: int) -> Iterator[pa.RecordBatch]:
        return streamed(self.opened.select(*FILE_COLUMNS), count, self.of)


def is_document() -> Any:
    return (F.col("kind") == FileKind.METADATA.value) & ~F.col("is_reached")


@dataclass
class OnDisk:
    """The same rows of several searches. They come when the first is asked for, and go when nobody holds this."""

    cluster: OnCluster
    _arrived: _Arrived | None = field(default=None, init=False, repr=False)
    _lock: Any = field(default_factory=Lock, init=False, repr=False)

    def victims(self, search: int, count: int) -> Iterator[pa.RecordBatch]:
        return self._objects(search, "is_victim", count)

    def documents(self, search: int, count: int) -> Iterator[pa.RecordBatch]:
        return self._objects(search, "is_document", count)

    def units(self, search: int, count: int) -> Iterator[pa.RecordBatch]:
        batches = chain(self._read("units", OF_ALL), self._read("units", search))
        return _counted((batch.select(list(FILE_COLUMNS)) for batch in batches), count)

    def _objects(self, search: int, wanted: str, count: int) -> Iterator[pa.RecordBatch]:
        read = self._read("objects", search)
        batches = (batch.filter(batch.column(wanted)).select(list(VICTIM_COLUMNS)) for batch in read)
        return _counted((batch for batch in batches if len(batch)), count)

    def _read(self, what: str, search: int) -> Iterator[pa.RecordBatch]:
        with self._lock:
            if self._arrived is None:
                with on_a_disk("what was found"):
                    self._arrived = self._brought()
            arrived = self._arrived
        return arrived.read(what, search)

    def _brought(self) -> _Arrived:
        arrived = _Arrived()
        is_victim = (F.col("class") == ObjectClass.VICTIM.value).alias("is_victim")
        objects = self.cluster.objects.select("search", is_victim, is_document().alias("is_document"), *VICTIM_COLUMNS)
        arrived.write("objects", self._streamed(objects.filter("is_victim or is_document")))
        arrived.write("units", self._streamed(self.cluster.opened))
        return arrived

    def _streamed(self, rows: DataFrame) -> Iterator[pa.RecordBatch]:
        """Yields the rows, those of a search in as few runs as there are jobs: one job does not bring a search that
        the driver could not hold.
        """
        with described(rows.sparkSession, "counting what was found", self.cluster.of):
            count = rows.count()
        return streamed(rows, count, self.cluster.of, in_order=("search", "identity"))


@dataclass(frozen=True, slots=True)
class _Arrived:
    """Rows on a disk of this machine, until nobody holds this: files of what one job brought of one search."""

    folder: TemporaryDirectory[str] = field(default_factory=lambda: TemporaryDirectory(prefix="firnline-objects-"))
    files: dict[tuple[str, int], list[Path]] = field(default_factory=dict)

    def write(self, what: str, batches: Iterator[pa.RecordBatch]) -> None:
        for search, group in groupby(_by_search(batches), key=itemgetter(0)):
            files = self.files.setdefault((what, search), [])
            files.append(Path(self.folder.name, f"{what}-{search}-{len(files)}.arrow"))
            _write(files[-1], (piece for _, piece in group))

    def read(self, what: str, search: int) -> Iterator[pa.RecordBatch]:
        for path in self.files.get((what, search), ()):
            with pa.OSFile(str(path), "rb") as source:
                yield from pa.ipc.open_stream(source)


def _by_search(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    for batch in batches:
        searches = batch.column("search").to_numpy(zero_copy_only=False)
        for search in np.unique(searches).tolist():
            first, end = np.searchsorted(searches, [search, search + 1]).tolist()
            yield search, batch.slice(first, end - first)


def _write(path: Path, pieces: Iterator[pa.RecordBatch]) -> None:
    first = next(pieces)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, first.schema) as writer:
        writer.write_batch(first)
        for piece in pieces:
            writer.write_batch(piece)


def _counted(batches: Iterator[pa.RecordBatch], count: int) -> Iterator[pa.RecordBatch]:
    """Yields the batches. Raises StoreError where they have other rows than were counted on the cluster."""
    came = 0
    for batch in batches:
        came += len(batch)
        yield batch
    refuse_others(count, came)
