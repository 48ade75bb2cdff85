"""Listing on threads of this process, into one Arrow table."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from firnline.model.files import Tally
from firnline.ports.engines import ListingTooLarge
from firnline.ports.listings import KeyRange, ListRanges
from firnline.ports.progress import Progress

_SCHEMA = pa.schema([("key", pa.string()), ("size", pa.int64()), ("modified_ms", pa.int64()), ("etag", pa.string())])


@dataclass(frozen=True, slots=True)
class LocalListing:
    rows: pa.Table

    @property
    def all(self) -> Tally:
        return Tally(len(self.rows), pc.sum(self.rows.column("size")).as_py() or 0)

    def sizes_of(self, keys: pa.ChunkedArray) -> pa.ChunkedArray:
        """Returns the size of each of these objects, null where it was not listed."""
        return self.rows.column("size").take(pc.index_in(keys, value_set=self.rows.column("key")))

    def close(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Lister:
    """Reads pieces on threads: a store makes its reader wait. Holds no more than `most` objects."""

    threads: int
    progress: Progress
    most: int | None = None

    def listed(self, pieces: Iterable[KeyRange], source: ListRanges) -> LocalListing:
        """Returns the listing, complete. The first piece that fails ends it."""
        found: list[pa.RecordBatch] = []
        with ThreadPoolExecutor(self.threads) as pool:
            due = [pool.submit(_piece, source, piece) for piece in pieces]
            try:
                for done, piece in enumerate(as_completed(due), 1):
                    found += piece.result()
                    self._check(found)
                    self.progress.step("listing", done, len(due))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return LocalListing(pa.Table.from_batches(found, _SCHEMA))

    def _check(self, found: Iterable[pa.RecordBatch]) -> None:
        if self.most is not None and sum(map(len, found)) > self.most:
            raise ListingTooLarge(f"more than {self.most:,} objects were listed")


def _piece(source: ListRanges, piece: KeyRange) -> list[pa.RecordBatch]:
    return list(source.batches(piece))
