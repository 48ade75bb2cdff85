"""The files of walks, brought here from the cluster: those of one walk as they stream, those of many by way of a disk.

A job for each of a thousand tables would look through the files of all each time. So the files that all of them ask for
come once, and wait on a disk of this machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from firnline.errors import FirnlineError
from firnline.spark.judged import FILES, UNREADABLE, OfOneKind
from firnline.spark.streaming import brought, described, on_a_disk, refuse_others

Asked = tuple[int, tuple[int, ...]]
"""A verdict, and kinds."""


class Spool:
    """Hands out files by walk."""

    def __init__(self, files: DataFrame, walks: int) -> None:
        self._files = files
        self._walks = walks
        self._lock = Lock()
        self._folder: TemporaryDirectory[str] | None = None
        self._brought: dict[Asked, _Arrivals] = {}

    def batches(self, walk: int, verdict: int, kinds: Sequence[int], count: int, of: str) -> Iterator[pa.RecordBatch]:
        """Yields the files of a walk; `count` is how many there are. Raises what an executor could not read, and
        StoreError where other files come.
        """
        asked = (verdict, tuple(kinds))
        if self._walks == 1:
            yield from self._streamed(asked, count, of)
            return
        with self._lock:
            if asked not in self._brought:
                self._brought[asked] = self._bring(asked, of)
        yield from self._brought[asked].of(walk, count)

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def _streamed(self, asked: Asked, count: int, of: str) -> Iterator[pa.RecordBatch]:
        came = 0
        for row in brought(self._chosen(asked), count, of):
            for batch in OfOneKind.of(row).batches():
                came += len(batch)
                yield batch
        refuse_others(count, came)

    def _chosen(self, asked: Asked) -> DataFrame:
        verdict, kinds = asked
        wanted = (F.col("verdict") == verdict) & F.col("kind").isin(list(kinds))
        return self._files.filter(wanted | (F.col("verdict") == UNREADABLE))

    def _bring(self, asked: Asked, of: str) -> _Arrivals:
        rows = self._chosen(asked)
        with described(rows.sparkSession, "counting files", of):
            count = rows.agg(F.sum("count")).collect()[0][0] or 0
        with on_a_disk("files"):
            arrivals = _Arrivals(self._place(asked))
            arrivals.write(brought(rows, count, of))
        return arrivals

    def _place(self, asked: Asked) -> Path:
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="firnline-files-")
        verdict, kinds = asked
        return Path(self._folder.name, f"{verdict}-{'.'.join(map(str, kinds))}")


@dataclass(slots=True)
class _Arrivals:
    """The files that came, in a file for each walk; and of which walks something could not be read."""

    folder: Path
    counts: dict[int, int] = field(default_factory=dict)
    problems: dict[int, FirnlineError] = field(default_factory=dict)

    def write(self, rows: Iterator[Any]) -> None:
        self.folder.mkdir(exist_ok=True)  # where bringing them failed, the next table asks again
        writers: dict[int, pa.ipc.RecordBatchStreamWriter] = {}
        with ExitStack() as opened:
            for row in rows:
                try:
                    self._add(row["walk"], OfOneKind.of(row).batches(), writers, opened)
                except FirnlineError as problem:
                    self.problems[row["walk"]] = problem

    def of(self, walk: int, count: int) -> Iterator[pa.RecordBatch]:
        if walk in self.problems:
            raise self.problems[walk]
        refuse_others(count, self.counts.get(walk, 0))
        with pa.OSFile(str(self._file(walk)), "rb") as source:
            yield from pa.ipc.open_stream(source)

    def _add(self, walk: int, batches: Iterator[pa.RecordBatch], writers: dict[int, Any], opened: ExitStack) -> None:
        for batch in batches:
            if walk not in writers:
                sink = opened.enter_context(pa.OSFile(str(self._file(walk)), "wb"))
                writers[walk] = opened.enter_context(pa.ipc.new_stream(sink, FILES))
            writers[walk].write_batch(batch)
            self.counts[walk] = self.counts.get(walk, 0) + len(batch)

    def _file(self, walk: int) -> Path:
        return self.folder / f"{walk}.arrow"
