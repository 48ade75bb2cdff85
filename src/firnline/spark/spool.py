"""The files of walks, brought here from the cluster: those of one walk as they stream, those of many by way of a disk.

A job for each of a thousand tables would look through the files of all each time. So the rows that all of them ask for
come once, sorted by table, and wait on a disk of this machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firnline.errors import FirnlineError, StoreError
from firnline.spark.settling import UNREADABLE
from firnline.spark.streaming import streamed
from firnline.spark.telling import error_of

Asked = tuple[int, tuple[int, ...]]
"""A verdict, and kinds."""


class Spool:
    """Hands out files by walk."""

    def __init__(self, files: DataFrame, walks: int) -> None:
        self._files = files
        self._walks = walks
        self._lock = Lock()
        self._folder: TemporaryDirectory[str] | None = None
        self._brought: dict[Asked, dict[int, int | FirnlineError]] = {}

    def batches(self, walk: int, verdict: int, kinds: Sequence[int], count: int, of: str) -> Iterator[pa.RecordBatch]:
        """Yields the files of a walk; `count` is how many there are. Raises StoreError where other rows come."""
        asked = (verdict, tuple(kinds))
        if self._walks == 1:
            yield from _whole(streamed(self._chosen(asked), count, of))
            return
        with self._lock:
            if asked not in self._brought:
                self._brought[asked] = self._bring(asked, of)
            came = self._brought[asked].get(walk, 0)
        if isinstance(came, FirnlineError):
            raise came
        if came != count:
            raise StoreError(
                f"the cluster counted {count:,} files, and then {came:,} came",
                "an executor may have been lost: plan again",
            )
        with pa.OSFile(str(self._file(asked, walk)), "rb") as source:
            yield from pa.ipc.open_stream(source)

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def _chosen(self, asked: Asked) -> DataFrame:
        verdict, kinds = asked
        wanted = (F.col("verdict") == verdict) & F.col("kind").isin(list(kinds))
        key = F.coalesce("key", "identity").alias("key")
        return self._files.filter(wanted | (F.col("verdict") == UNREADABLE)).select(
            "walk", "identity", key, "size", "kind", "error"
        )

    def _bring(self, asked: Asked, of: str) -> dict[int, int | FirnlineError]:
        """Returns how many files of each walk came, and of which one something could not be read."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="firnline-files-")
        rows = self._chosen(asked).orderBy("walk").persist()
        try:
            return self._written(asked, streamed(rows, rows.count(), of))
        finally:
            rows.unpersist()

    def _written(self, asked: Asked, batches: Iterator[pa.RecordBatch]) -> dict[int, int | FirnlineError]:
        pieces = ((walk, piece) for batch in batches for walk, piece in _by_walk(batch))
        came: dict[int, int | FirnlineError] = {}
        for walk, group in groupby(pieces, key=lambda piece: piece[0]):
            try:
                came[walk] = self._write(self._file(asked, walk), (piece for _, piece in group))
            except UnreadThere as told:
                came[walk] = told.problem
        return came

    def _write(self, path: Path, pieces: Iterator[pa.RecordBatch]) -> int:
        first = _checked(next(pieces))
        count = len(first)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, first.schema) as writer:
            writer.write_batch(first)
            for piece in pieces:
                writer.write_batch(_checked(piece))
                count += len(piece)
        return count

    def _file(self, asked: Asked, walk: int) -> Path:
        verdict, kinds = asked
        assert self._folder is not None
        return Path(self._folder.name, f"{verdict}-{'.'.join(map(str, kinds))}-{walk}.arrow")


class UnreadThere(Exception):
    """What an executor could not read: of one walk, so that the others' files still come."""

    def __init__(self, problem: FirnlineError) -> None:
        super().__init__(problem.message)
        self.problem = problem


def _checked(batch: pa.RecordBatch) -> pa.RecordBatch:
    for said in batch.column("error").drop_null().to_pylist():
        raise UnreadThere(error_of(said))
    return batch


def _whole(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the batches. Raises what an executor could not read."""
    try:
        yield from map(_checked, batches)
    except UnreadThere as told:
        raise told.problem from None


def _by_walk(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    walks = batch.column("walk").to_numpy(zero_copy_only=False)
    for walk in np.unique(walks).tolist():
        first, end = np.searchsorted(walks, [walk, walk + 1]).tolist()
        yield walk, batch.slice(first, end - first)
