"""Opening manifest lists and manifests: the only Iceberg code that runs on executors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import UnreadableMetadata, UnsupportedFormat
from firnline.formats.avro import decode
from firnline.formats.columns import ROW_SCHEMA, first_dotted, identities
from firnline.formats.iceberg.opening import REPAIR, enough, opened
from firnline.formats.iceberg.paths import dotted
from firnline.model.files import File, FileKind
from firnline.model.locations import identity
from firnline.ports.stores import Get

_LIST_COLUMNS = {
    "manifest_path": pa.string(),
    "manifest_length": pa.int64(),
    "key_metadata": pa.binary(),
    "content": pa.int64(),
    "added_files_count": pa.int64(),
    "added_data_files_count": pa.int64(),
    "existing_files_count": pa.int64(),
    "existing_data_files_count": pa.int64(),
}
_ENTRY_COLUMNS = {
    "status": pa.int64(),
    "data_file.content": pa.int64(),
    "data_file.file_path": pa.string(),
    "data_file.file_size_in_bytes": pa.int64(),
    "data_file.file_format": pa.string(),
}
_DELETED = 2
_EQUALITY_DELETES = 2


@dataclass(frozen=True, slots=True)
class IcebergExpand:
    """Expands manifest lists into manifests, and manifests into the files that are live in them."""

    store: Get

    @property
    def order(self) -> tuple[FileKind, ...]:
        return (FileKind.MANIFEST_LIST, FileKind.MANIFEST)

    @property
    def folds(self) -> bool:
        return False

    def __call__(self, unit: File) -> pa.RecordBatch:
        with opened(self.store, unit) as data:
            rows = _manifests(data, unit.expects) if unit.kind is FileKind.MANIFEST_LIST else _live_files(data)
        return pa.concat_batches([_itself(unit, len(data)), rows])


def _itself(unit: File, size: int) -> pa.RecordBatch:
    row = [[identity(unit.key)], [unit.key], [size], [unit.kind.value], [False]]
    return pa.record_batch(row, schema=ROW_SCHEMA)


def _manifests(data: bytes, expects: int | None) -> pa.RecordBatch:
    """Returns the manifests that a list names, each as a unit to open."""
    entries = decode(data, _LIST_COLUMNS).batch
    enough(entries, expects or 0)
    keys = _required(entries, "manifest_path")
    sizes = _lengths(entries, "manifest_length")
    if entries.column("key_metadata").null_count < len(entries):
        raise UnsupportedFormat("it names encrypted manifests", hint="without the keys nobody can tell what is needed")
    return _rows(keys, sizes, pa.repeat(FileKind.MANIFEST.value, len(entries)), opens=True)


def _live_files(data: bytes) -> pa.RecordBatch:
    """Returns the files that a manifest lists as live (added or existing).

    An entry that says 'deleted' is no news of garbage: the path may be live elsewhere, so it is simply not named.
    """
    entries = decode(data, _ENTRY_COLUMNS).batch
    status = _required(entries, "status")
    _only_known(status, _DELETED, "entry status")
    live = entries.filter(pc.not_equal(status, _DELETED)) if _largest(status) == _DELETED else entries
    keys = _required(live, "data_file.file_path")
    return _rows(keys, _lengths(live, "data_file.file_size_in_bytes"), _kinds(live), opens=False)


def _kinds(live: pa.RecordBatch) -> pa.Array:
    """Returns the kind of each file. Manifests of version 1 have no content column: they list data alone."""
    content = pc.fill_null(live.column("data_file.content"), 0)
    _only_known(content, _EQUALITY_DELETES, "file content")
    if _largest(content) == 0:
        return pa.repeat(FileKind.DATA.value, len(live))
    puffin = pc.fill_null(pc.equal(pc.ascii_upper(live.column("data_file.file_format")), "PUFFIN"), False)
    positions = pc.if_else(puffin, FileKind.DELETION_VECTORS.value, FileKind.POSITION_DELETES.value)
    deletes = pc.if_else(pc.equal(content, _EQUALITY_DELETES), FileKind.EQUALITY_DELETES.value, positions)
    return pc.if_else(pc.equal(content, 0), FileKind.DATA.value, deletes)


def _rows(keys: pa.Array, sizes: pa.Array, kinds: pa.Array, opens: bool) -> pa.RecordBatch:
    strange = first_dotted(keys)
    if strange is not None:
        raise dotted(strange)
    columns = [identities(keys), keys, sizes, kinds, pa.repeat(pa.scalar(opens), len(keys))]
    return pa.record_batch(columns, schema=ROW_SCHEMA)


def _required(batch: pa.RecordBatch, name: str) -> pa.Array:
    column = batch.column(name)
    if column.null_count:
        raise UnreadableMetadata(f"an entry has no {name}", hint=REPAIR)
    return column


def _lengths(batch: pa.RecordBatch, name: str) -> pa.Array:
    column = _required(batch, name)
    if np.any(column.to_numpy() < 0):
        raise UnreadableMetadata(f"an entry has a negative {name}", hint=REPAIR)
    return column


def _largest(column: pa.Array) -> int:
    return int(column.to_numpy().max(initial=0))


def _only_known(column: pa.Array, last: int, what: str) -> None:
    """Returns where all numbers are 0 to `last`."""
    numbers = column.to_numpy()
    strange = numbers[(numbers < 0) | (numbers > last)]
    if len(strange):
        raise UnsupportedFormat(
            f"{what} {strange[0]} is not understood", hint="a newer version of firnline may know it"
        )
