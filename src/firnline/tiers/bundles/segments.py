"""The index of bundles as it lies in a tier: one segment, a Parquet file, for each time that bundles were written.

A segment is written after its bundles were seen to be whole, so whatever any segment says is true, also one of a run
that did not come to an end. It lies in the standard class: which bundles a snapshot needs is known before any is
restored.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from firnline.errors import UnreadableMetadata
from firnline.ports.copying import Stored
from firnline.ports.packing import BundleOutcome, PackedFile

SEGMENT = ".parquet"
_COLUMNS = ("place", "size", "checksum", "source_checksum", "bundle", "offset", "bundle_size", "bundle_checksum")


class IndexEntry(NamedTuple):
    """A file, and the bundle in which it lies."""

    file: PackedFile
    bundle: Stored


def entries_in(outcome: BundleOutcome) -> list[IndexEntry]:
    """Returns what a bundle holds that was written."""
    bundle = Stored(outcome.target, outcome.size, outcome.checksum)
    return [IndexEntry(file, bundle) for file in outcome.packed]


def segment_of(entries: Sequence[IndexEntry]) -> bytes:
    """Returns the segment that says in which bundles files lie."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows: list[tuple[Any, ...]] = [(*file, bundle.size, bundle.checksum) for file, bundle in entries]
    order = (*PackedFile._fields, "bundle_size", "bundle_checksum")
    table = pa.table({name: [row[order.index(name)] for row in rows] for name in _COLUMNS})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()


def segment_name(data: bytes) -> str:
    """Returns what a segment is called: by its checksum. Those of Parquet leave out its footer, and the headers of
    pages; a segment that lost a bit there may lead to other bytes of a bundle.
    """
    return f"{sha256(data).hexdigest()}{SEGMENT}"


def entries_of(key: str, data: bytes) -> Iterator[IndexEntry]:
    """Yields what a segment says. Raises UnreadableMetadata where it is damaged: files would seem not to be packed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if not key.endswith(f"/{segment_name(data)}"):
            raise ValueError("its bytes are not those that its name tells")
        file = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True)
        for batch in file.iter_batches(columns=list(_COLUMNS)):
            for row in batch.to_pylist():
                yield _entry(row)
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as problem:
        raise UnreadableMetadata(
            f"{key} is no index of bundles: {problem}", hint="bring it back from a backup; the bundles are tar files"
        ) from problem


def _entry(row: dict[str, Any]) -> IndexEntry:
    file = PackedFile(**{name: row[name] for name in PackedFile._fields})
    if any(value is None for value in row.values()):
        raise ValueError(f"{file.place} lacks a value")
    return IndexEntry(file, Stored(file.bundle, row["bundle_size"], row["bundle_checksum"]))
