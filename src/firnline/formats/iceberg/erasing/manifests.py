"""Manifests without the entries of some data files, and of deletes that are about these alone."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import UsageError
from firnline.formats.avro import decode
from firnline.formats.avro.rebuilding import rebuild
from firnline.formats.columns import identities
from firnline.formats.iceberg.expand import only_known
from firnline.formats.opening import required
from firnline.ports.erasing import Lost, NamedFile

_CONTENT, _PATH, _SIZE = "data_file.content", "data_file.file_path", "data_file.file_size_in_bytes"
_ROWS, _FIRST_ROW, _REFERENCED = "data_file.record_count", "data_file.first_row_id", "data_file.referenced_data_file"
_PART = "data_file.content_size_in_bytes"
_COLUMNS = {
    "status": pa.int64(), _CONTENT: pa.int64(), _PATH: pa.string(), _REFERENCED: pa.string(), _SIZE: pa.int64(),
    _ROWS: pa.int64(), _FIRST_ROW: pa.int64(), _PART: pa.int64(),
}  # fmt: skip
_DELETED, _EQUALITY_DELETES = 2, 2
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
Whole = np.ndarray[tuple[int], np.dtype[np.int64]]


class Counts(NamedTuple):
    """How many files and rows the entries of a manifest tell of, by their status: existing, added, deleted."""

    files: tuple[int, int, int]
    rows: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    """Entries that stay together. `rows_before` is how many row ids the entries before them took that stood in the
    same manifest.
    """

    entries: frozenset[int]
    rows_before: int
    counts: Counts


@dataclass(frozen=True, slots=True)
class ReadManifest:
    """The entries of one manifest; `erased` are those that go."""

    data: bytes
    entries: pa.RecordBatch
    erased: Mask

    @property
    def names_any(self) -> bool:
        return bool(self.erased.any())

    @property
    def _live(self) -> Mask:
        found: Mask = self._numbers("status") != _DELETED
        return found

    @property
    def loses_rows(self) -> bool:
        """Whether a file that goes is live here; else the manifest only tells that it was taken out."""
        return bool((self.erased & self._live).any())

    def _numbers(self, name: str) -> Whole:
        found: Whole = pc.fill_null(self.entries.column(name), 0).to_numpy()
        return found

    def files(self) -> Iterator[NamedFile]:
        """Yields the data files that go."""
        rows = np.flatnonzero(self.erased & (self._numbers(_CONTENT) == 0))
        for row in self.entries.take(pa.array(rows)).to_pylist():
            yield NamedFile(row[_PATH], row[_SIZE] or 0, row[_ROWS] or 0, row["status"] != _DELETED)

    def lost(self) -> Lost:
        """Returns what a snapshot loses that has this manifest."""
        live, data = self.erased & self._live, self._numbers(_CONTENT) == 0
        rows, deletes = self._numbers(_ROWS), live & ~data
        parts = self.entries.column(_PART)
        sizes = pc.fill_null(pc.coalesce(parts, self.entries.column(_SIZE)), 0).to_numpy()
        return Lost(
            int((live & data).sum()),
            int(rows[live & data].sum()),
            int(deletes.sum()),
            int(rows[deletes].sum()),
            int(sizes[live].sum()),
        )

    def pieces(self, *, numbered: bool) -> list[Piece]:
        """Returns what stays: one piece, or several of a manifest whose rows are `numbered`.

        An entry without a number of its own begins where those before it end: where one of them goes, all after it
        would get others. So they become a manifest of their own, which begins at their number.
        """
        takes = self._live & self.entries.column(_FIRST_ROW).is_null().to_numpy(zero_copy_only=False)
        before = np.concatenate([[0], np.cumsum(np.where(takes, self._numbers(_ROWS), 0))])
        cuts = np.flatnonzero(self.erased & takes).tolist() if numbered else []
        bounds = [0, *(cut + 1 for cut in cuts), len(self.erased)]
        found = [self._piece(start, end, int(before[start])) for start, end in pairwise(bounds)]
        return [each for each in found if each.entries] or found[:1]

    def _piece(self, start: int, end: int, rows_before: int) -> Piece:
        stays = np.zeros(len(self.erased), dtype=bool)
        stays[start:end] = ~self.erased[start:end]
        status, rows = self._numbers("status"), self._numbers(_ROWS)
        of_each = [stays & (status == number) for number in range(_DELETED + 1)]
        files, counted = (int(each.sum()) for each in of_each), (int(rows[each].sum()) for each in of_each)
        entries = frozenset(np.flatnonzero(stays).tolist())
        return Piece(entries, rows_before, Counts(tuple(files), tuple(counted)))  # type: ignore[arg-type]

    def written(self, piece: Piece) -> bytes:
        return rebuild(self.data, (), lambda number: ({},) if number in piece.entries else ())


def read_manifest(data: bytes, files: Set[str]) -> ReadManifest:
    """Returns the manifest, of which the data files of these identities go. Raises UsageError where one of them is a
    file of deletes: without it rows would come back that were deleted.
    """
    entries = decode(data, _COLUMNS).batch
    only_known(required(entries, "status"), _DELETED, "entry status")
    content = pc.fill_null(entries.column(_CONTENT), 0)
    only_known(content, _EQUALITY_DELETES, "file content")
    named = _is_one(required(entries, _PATH), files)
    deletes = content.to_numpy() != 0
    if (named & deletes).any():
        path = entries.column(_PATH)[int(np.flatnonzero(named & deletes)[0])].as_py()
        raise UsageError(
            f"{path} is a file of deletes: without it, rows that it deletes would come back",
            hint="name the data files that the rows lie in; nothing was changed",
        )
    about = entries.column(_REFERENCED)
    referring = _is_one(pc.fill_null(about, ""), files) if about.null_count < len(about) else np.zeros_like(named)
    return ReadManifest(data, entries, named | (deletes & referring))


def _is_one(paths: pa.Array, files: Set[str]) -> Mask:
    found: Mask = pc.is_in(identities(paths), pa.array(sorted(files), pa.string())).to_numpy(zero_copy_only=False)
    return found
