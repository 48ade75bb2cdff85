"""Manifests: the path of each file and, of position deletes and deletion vectors, all that tells which data files they
are about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.formats.avro import decode
from firnline.formats.avro.encoded import varint
from firnline.formats.avro.splicing import Rewrite, splice
from firnline.formats.iceberg.expand import only_known
from firnline.formats.iceberg.relocating.bounds import moved_bounds
from firnline.formats.iceberg.relocating.naming import MovedPaths, NamingFile, Sizes
from firnline.formats.opening import required

_CONTENT, _PATH, _SIZE = "data_file.content", "data_file.file_path", "data_file.file_size_in_bytes"
_LOWER, _UPPER, _REFERENCED = "data_file.lower_bounds", "data_file.upper_bounds", "data_file.referenced_data_file"
_COLUMNS = {
    "status": pa.int64(), _PATH: pa.string(), _LOWER: pa.binary(), _UPPER: pa.binary(), _SIZE: pa.int64(),
}  # fmt: skip
_DELETED = 2
_POSITION_DELETES, _EQUALITY_DELETES = 1, 2


@dataclass(frozen=True, slots=True)
class _Deletes:
    """What an entry says of a file of position deletes, or of a deletion vector; bounds as they are encoded."""

    path: str
    lives: bool
    lower: bytes | None
    upper: bytes | None


def read_manifest(data: bytes) -> NamingFile:
    """Returns the manifest, which tells the sizes of the position deletes that are live in it. Those of files that an
    entry says are deleted stay as they are: they may be nowhere any more.
    """
    deletes = dict(_deletes_in(data))
    live = dict.fromkeys(each.path for each in deletes.values() if each.lives)
    return NamingFile(partial(_written, data, deletes), live)


def _deletes_in(data: bytes) -> Iterator[tuple[int, _Deletes]]:
    """Yields the entries of position deletes, each with its number. Most manifests have none: of them no more is read.

    Raises UnreadableMetadata where an entry has no path: what is not found would not be rewritten.
    """
    entries = decode(data, {_CONTENT: pa.int64(), _PATH: pa.string()}).batch
    required(entries, _PATH)
    content = pc.fill_null(entries.column(_CONTENT), 0)
    only_known(content, _EQUALITY_DELETES, "file content")
    rows = np.flatnonzero(content.to_numpy() == _POSITION_DELETES)
    if not len(rows):
        return
    entries = decode(data, _COLUMNS).batch.take(pa.array(rows))
    only_known(required(entries, "status"), _DELETED, "entry status")
    required(entries, _SIZE)
    said = zip(*(column.to_pylist() for column in entries.columns), strict=True)
    for row, (status, path, lower, upper, _) in zip(rows.tolist(), said, strict=True):
        yield row, _Deletes(path, status != _DELETED, lower, upper)


def _written(data: bytes, deletes: Mapping[int, _Deletes], paths: MovedPaths, sizes: Sizes) -> bytes:
    rewrites: dict[str, Rewrite] = {_PATH: paths.of_encoded, _REFERENCED: paths.of_encoded}
    if deletes:
        bounds = {row: moved_bounds(each.lower, each.upper, paths.place) for row, each in deletes.items()}
        lengths = {row: varint(sizes[each.path]) for row, each in deletes.items() if each.lives}
        rewrites[_SIZE] = lambda value, row: lengths.get(row, value)
        rewrites[_LOWER] = lambda value, row: _either(bounds, row, 0, value)
        rewrites[_UPPER] = lambda value, row: _either(bounds, row, 1, value)
    return splice(data, rewrites)


def _either(bounds: Mapping[int, tuple[bytes | None, bytes | None]], row: int, which: int, value: bytes) -> bytes:
    new = bounds[row][which] if row in bounds else None
    return value if new is None else new
