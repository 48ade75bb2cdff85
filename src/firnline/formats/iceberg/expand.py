"""What the document names for a snapshot, and what manifest lists and manifests name: the part that
runs on executors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import FirnlineError, UnsupportedFormat
from firnline.formats.avro import CorruptAvro, decode_many
from firnline.formats.columns import ROW_SCHEMA, first_dotted, identities, nothing_named
from firnline.formats.damage import named
from firnline.formats.iceberg import fields
from firnline.formats.iceberg.counts import Numbers, claim_of, refuse_cut
from firnline.formats.iceberg.names import dotted, plain_path
from firnline.formats.opening import opened, required, sizes_of
from firnline.model.files import File, FileKind
from firnline.model.snapshots import SnapshotId
from firnline.ports.expanding import Expanded, Together, end_to_end, joined
from firnline.ports.formats import State
from firnline.ports.stores import Get, shared
from firnline.walking.arrow import column_of


def roots_of(state: State, trusted: Set[SnapshotId] = frozenset()) -> Iterator[tuple[SnapshotId, File]]:
    """Yields the units and files that the document names, each with its snapshot. The manifest lists of `trusted`
    snapshots are taken as they are, whatever their summaries say.

    Statistics may belong to a snapshot that is not in the table: they stay in the document after a commit, and their
    path may be shared with statistics that go.
    """
    inline = state.document["format-version"] == 1
    for snapshot in fields.objects(state.document, "snapshots", state.fence):
        owner = str(snapshot["snapshot-id"])
        claim = None if owner in trusted else claim_of(snapshot.get("summary"))
        yield from ((owner, unit) for unit in _units(snapshot, claim, state.fence, inline))
    yield from _statistics(state, "statistics", FileKind.STATISTICS)
    yield from _statistics(state, "partition-statistics", FileKind.PARTITION_STATISTICS)


def _units(snapshot: fields.Fields, claim: int | None, where: str, inline: bool) -> Iterator[File]:
    if snapshot.get("manifest-list") is not None:
        path = plain_path(fields.text(snapshot, "manifest-list", where), where)
        yield File(FileKind.MANIFEST_LIST, path, opens=True, expects=claim)
        return
    manifests = snapshot.get("manifests") if inline else None
    if not isinstance(manifests, list) or not all(isinstance(path, str) and path for path in manifests):
        raise fields.damaged(where, f"snapshot {snapshot['snapshot-id']} names neither a manifest list nor manifests")
    yield from (File(FileKind.MANIFEST, plain_path(path, where), opens=True) for path in manifests)


def _statistics(state: State, name: str, kind: FileKind) -> Iterator[tuple[SnapshotId, File]]:
    for each in fields.objects(state.document, name, state.fence):
        path = plain_path(fields.text(each, "statistics-path", state.fence), state.fence)
        size = fields.size(each, "file-size-in-bytes", state.fence)
        yield str(fields.whole(each, "snapshot-id", state.fence)), File(kind, path, size)


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

    def share(self, parts: int) -> IcebergExpand:
        return IcebergExpand(shared(self.store, parts))

    def __call__(self, units: Sequence[File], together: Together = map) -> Expanded:
        if not units:
            return nothing_named()
        contents = list(together(self._read, units))
        if len(units) > 1:
            with suppress(CorruptAvro, FirnlineError):
                return _expanded(units, contents)
        return joined(([number], _alone(*each)) for number, each in enumerate(zip(units, contents, strict=True)))

    def _read(self, unit: File) -> bytes:
        with opened(self.store, unit) as data:
            return data


def _alone(unit: File, data: bytes) -> Expanded:
    """Returns what one unit names. Whatever is wrong with it is told with its name."""
    with named(unit.kind, unit.key):
        return _expanded([unit], [data])


def _expanded(units: Sequence[File], contents: Sequence[bytes]) -> Expanded:
    name_all = _manifests if units[0].kind is FileKind.MANIFEST_LIST else _live_files
    rows, of = name_all(units, contents)
    every = end_to_end([_themselves(units, contents), rows])
    return Expanded(every, np.concatenate([np.arange(len(units)), of]))


def _themselves(units: Sequence[File], contents: Sequence[bytes]) -> pa.RecordBatch:
    keys = pa.array([unit.key for unit in units], pa.string())
    sizes = pa.array(list(map(len, contents)), pa.int64())
    kinds = pa.array([unit.kind.value for unit in units], pa.string())
    columns = [identities(keys), keys, sizes, kinds, pa.repeat(pa.scalar(False), len(keys))]
    return pa.record_batch(columns, schema=ROW_SCHEMA)


def _manifests(lists: Sequence[File], contents: Sequence[bytes]) -> tuple[pa.RecordBatch, Numbers]:
    """Returns the manifests that the lists name, each as a unit to open."""
    entries, of = decode_many(contents, _LIST_COLUMNS)
    refuse_cut(entries, of, [each.expects for each in lists], contents)
    keys = required(entries, "manifest_path")
    sizes = sizes_of(entries, "manifest_length")
    if entries.column("key_metadata").null_count < len(entries):
        raise UnsupportedFormat("it names encrypted manifests", hint="without the keys nobody can tell what is needed")
    return _rows(keys, sizes, pa.repeat(FileKind.MANIFEST.value, len(entries)), opens=True), of


def _live_files(manifests: Sequence[File], contents: Sequence[bytes]) -> tuple[pa.RecordBatch, Numbers]:
    """Returns the files that the manifests list as live (added or existing).

    An entry that says 'deleted' is no news of garbage: the path may be live elsewhere, so it is simply not named.
    """
    entries, of = decode_many(contents, _ENTRY_COLUMNS)
    status = required(entries, "status")
    only_known(status, _DELETED, "entry status")
    if _largest(status) == _DELETED:
        stays = status.to_numpy() != _DELETED
        entries, of = entries.filter(column_of(stays)), of[stays]
    keys = required(entries, "data_file.file_path")
    return _rows(keys, sizes_of(entries, "data_file.file_size_in_bytes"), _kinds(entries), opens=False), of


def _kinds(live: pa.RecordBatch) -> pa.Array:
    """Returns the kind of each file. Manifests of version 1 have no content column: they list data alone."""
    content = pc.fill_null(live.column("data_file.content"), 0)
    only_known(content, _EQUALITY_DELETES, "file content")
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


def _largest(column: pa.Array) -> int:
    return int(column.to_numpy().max(initial=0))


def only_known(column: pa.Array, last: int, what: str) -> None:
    """Raises UnsupportedFormat unless all numbers are 0 to `last`."""
    numbers = column.to_numpy()
    strange = numbers[(numbers < 0) | (numbers > last)]
    if len(strange):
        raise UnsupportedFormat(
            f"{what} {strange[0]} is not understood", hint="a newer version of firnline may know it"
        )
