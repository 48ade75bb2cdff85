"""Opening manifest lists and manifests: the only Iceberg code that runs on executors."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import FirnlineError, ObjectNotFound, UnreadableMetadata, UnsupportedFormat
from firnline.formats.avro import CorruptAvro, decode
from firnline.formats.columns import ROW_SCHEMA, first_dotted, identities
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
_POSITION_DELETES, _EQUALITY_DELETES = 1, 2


@dataclass(frozen=True, slots=True)
class IcebergExpand:
    """Expands manifest lists into manifests, and manifests into the files that are live in them."""

    store: Get

    @property
    def order(self) -> tuple[FileKind, ...]:
        return (FileKind.MANIFEST_LIST, FileKind.MANIFEST)

    def __call__(self, unit: File) -> pa.RecordBatch:
        try:
            data = _whole(unit, self.store.get(unit.key))
            rows = _manifests(data, unit.expects) if unit.kind is FileKind.MANIFEST_LIST else _live_files(data)
        except ObjectNotFound as missing:
            raise UnreadableMetadata(f"{unit.kind} is missing: {unit.key}", hint=_REPAIR) from missing
        except CorruptAvro as damage:
            raise UnreadableMetadata(f"{unit.kind} is damaged: {unit.key}: {damage}", hint=_REPAIR) from damage
        except FirnlineError as known:
            raise type(known)(f"{unit.kind} {unit.key}: {known.message}", known.hint) from known
        return pa.Table.from_batches([_itself(unit, len(data)), rows]).combine_chunks().to_batches()[0]


_REPAIR = "nothing was changed; without it nobody can tell which files are needed"


def _whole(unit: File, data: bytes) -> bytes:
    """Returns the data where it is as long as its list says.

    A manifest cut exactly between two blocks still decodes, with fewer files: they would look like garbage.
    """
    if unit.size is not None and len(data) != unit.size:
        raise CorruptAvro(f"it has {len(data)} bytes, its list says {unit.size}")
    return data


def _itself(unit: File, size: int) -> pa.RecordBatch:
    row = [[identity(unit.key)], [unit.key], [size], [unit.kind.value], [False]]
    return pa.record_batch(row, schema=ROW_SCHEMA)


def _manifests(data: bytes, expects: int | None) -> pa.RecordBatch:
    """Returns the manifests that a list names, each as a unit to open."""
    entries = decode(data, _LIST_COLUMNS).batch
    _enough(entries, expects or 0)
    keys = _required(entries, "manifest_path")
    sizes = _lengths(entries, "manifest_length")
    if entries.column("key_metadata").null_count < len(entries):
        raise UnsupportedFormat("it names encrypted manifests", hint="without the keys nobody can tell what is needed")
    return _rows(keys, sizes, pa.repeat(FileKind.MANIFEST.value, len(entries)), opens=True)


def _enough(entries: pa.RecordBatch, expects: int) -> None:
    """Returns where the manifests tell of at least as many data files as the snapshot does.

    Nothing says how long a list is, and one cut between two blocks still decodes: without its last manifests.
    Writers of version 1 may leave the counts out; then only a list without any manifest of data is seen.
    """
    data = entries.filter(pc.equal(pc.fill_null(entries.column("content"), 0), 0))
    counts = pc.add(_count(data, "added"), _count(data, "existing"))
    if counts.null_count:
        return
    found = pc.sum(counts).as_py() or 0
    if found < expects:
        raise CorruptAvro(f"it tells of {found} data files, its snapshot of {expects}; it was cut short")


def _count(data: pa.RecordBatch, which: str) -> pa.Array:
    """Returns a column of counts; some writers use its older name."""
    return pc.coalesce(data.column(f"{which}_files_count"), data.column(f"{which}_data_files_count"))


def _live_files(data: bytes) -> pa.RecordBatch:
    """Returns the files that a manifest lists as live (added or existing).

    An entry that says 'deleted' is no news of garbage: the path may be live elsewhere, so it is simply not named.
    """
    entries = decode(data, _ENTRY_COLUMNS).batch
    _only_known(_required(entries, "status"), (0, 1, _DELETED), "entry status")
    live = entries.filter(pc.not_equal(entries.column("status"), _DELETED))
    keys = _required(live, "data_file.file_path")
    return _rows(keys, _lengths(live, "data_file.file_size_in_bytes"), _kinds(live), opens=False)


def _kinds(live: pa.RecordBatch) -> pa.Array:
    """Returns the kind of each file. Manifests of version 1 have no content column: they list data alone."""
    content = pc.fill_null(live.column("data_file.content"), 0)
    _only_known(content, (0, _POSITION_DELETES, _EQUALITY_DELETES), "file content")
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
        raise UnreadableMetadata(f"an entry has no {name}", hint=_REPAIR)
    return column


def _lengths(batch: pa.RecordBatch, name: str) -> pa.Array:
    column = _required(batch, name)
    if pc.any(pc.less(column, 0)).as_py():
        raise UnreadableMetadata(f"an entry has a negative {name}", hint=_REPAIR)
    return column


def _only_known(column: pa.Array, known: tuple[int, ...], what: str) -> None:
    strange = pc.invert(pc.is_in(column, value_set=pa.array(known, pa.int64())))
    if pc.any(strange).as_py():
        value = column.filter(strange)[0].as_py()
        raise UnsupportedFormat(f"{what} {value} is not understood", hint="a newer version of firnline may know it")
