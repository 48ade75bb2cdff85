"""Manifest lists that name other manifests in the place of some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from firnline.errors import UnsupportedFormat
from firnline.formats.avro import decode
from firnline.formats.avro.encoded import sized, varint
from firnline.formats.avro.rebuilding import Replaced, rebuild
from firnline.formats.iceberg.erasing.manifests import Counts
from firnline.formats.opening import required, sizes_of
from firnline.model.files import File, FileKind

_PATH, _LENGTH, _FIRST_ROW, _PARTITIONS = "manifest_path", "manifest_length", "first_row_id", "partitions"
_STATUS = ("existing", "added", "deleted")
_FILES = (("{}_files_count", "{}_data_files_count"), ("{}_rows_count",))
_COUNTS = tuple(name.format(each) for names in _FILES for name in names for each in _STATUS)
_NUMBERS = {_LENGTH: pa.int64(), _FIRST_ROW: pa.int64(), **dict.fromkeys(_COUNTS, pa.int64())}
_COLUMNS = {_PATH: pa.string(), "key_metadata": pa.binary(), **_NUMBERS}


@dataclass(frozen=True, slots=True)
class NewManifest:
    """A manifest that takes the place of another, or of a part of it."""

    path: str
    length: int
    rows_before: int
    counts: Counts


def manifests_in(data: bytes) -> list[File]:
    """Returns all manifests, with their sizes. Raises UnsupportedFormat where they are encrypted."""
    entries = decode(data, {_PATH: pa.string(), _LENGTH: pa.int64(), "key_metadata": pa.binary()}).batch
    if entries.column("key_metadata").null_count < len(entries):
        raise UnsupportedFormat("it names encrypted manifests", hint="without the keys nothing can be erased from them")
    told = zip(required(entries, _PATH).to_pylist(), sizes_of(entries, _LENGTH).to_pylist(), strict=True)
    return [File(FileKind.MANIFEST, path, size, opens=True) for path, size in told]


def with_manifests(data: bytes, new: Mapping[str, Sequence[NewManifest]]) -> bytes:
    """Returns the list with these in the places of others. What was known of their partitions is left out: it may tell
    values of the files that go, and readers do without it.
    """
    rows = decode(data, _COLUMNS).batch.to_pylist()

    def records(number: int) -> Sequence[Replaced]:
        row = rows[number]
        told = new.get(row[_PATH])
        return ({},) if told is None else [dict(_values(row, each)) for each in told]

    return rebuild(data, (*_COLUMNS, _PARTITIONS), records)


def _values(row: Mapping[str, int | None], manifest: NewManifest) -> Iterator[tuple[str, bytes | None]]:
    """Yields what the list tells of the new one; counts that it left out of the old one stay out."""
    yield _PATH, sized(manifest.path.encode())
    yield _LENGTH, varint(manifest.length)
    yield _PARTITIONS, None
    if (first := row[_FIRST_ROW]) is not None:
        yield _FIRST_ROW, varint(first + manifest.rows_before)
    for names, counts in zip(_FILES, manifest.counts, strict=True):
        for name in names:
            told = zip((name.format(each) for each in _STATUS), counts, strict=True)
            yield from ((column, varint(count)) for column, count in told if row[column] is not None)
