"""A Paimon table's own metadata as rows: what SQL shows as `history`, `manifests`, `entries` and `files`.

The columns are Iceberg's where Paimon has the like. Statistics of columns are left out, as they are for Iceberg.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.formats.opening import opened, sizes_of
from firnline.formats.paimon.names import MAIN
from firnline.formats.paimon.reading.branches import branches_of
from firnline.formats.paimon.reading.state import files_in
from firnline.formats.paimon.walking.entries import columns_of, names_of, ops_of
from firnline.formats.paimon.walking.layout import (
    ENTRY_COLUMNS,
    EntryFolders,
    Layout,
    digest,
    extras_in,
    folds_of,
    or_external,
)
from firnline.formats.paimon.walking.partitions import partition_values, value_text
from firnline.formats.paimon.walking.roots import roots_of
from firnline.model.files import File, FileKind
from firnline.model.snapshots import SnapshotId, number_of
from firnline.ports.formats import State
from firnline.ports.inspect import Manifest
from firnline.ports.stores import Get

_SHORT = pa.int32()
MANIFESTS = pa.schema(
    [
        ("content", _SHORT), ("path", pa.string()), ("length", pa.int64()), ("added_snapshot_id", pa.int64()),
        ("added_data_files_count", _SHORT), ("deleted_data_files_count", _SHORT),
    ]
)  # fmt: skip
_LISTED = {
    "_FILE_NAME": pa.string(), "_FILE_SIZE": pa.int64(), "_NUM_ADDED_FILES": pa.int64(),
    "_NUM_DELETED_FILES": pa.int64(),
}  # fmt: skip
_NUMBERS = {
    "record_count": "_FILE._ROW_COUNT",
    "file_size_in_bytes": "_FILE._FILE_SIZE",
    "bucket": "_BUCKET",
    "level": "_FILE._LEVEL",
    "schema_id": "_FILE._SCHEMA_ID",
    "first_row_id": "_FILE._FIRST_ROW_ID",
}
_WANTED = {**ENTRY_COLUMNS, **dict.fromkeys(_NUMBERS.values(), pa.int64())}
_EXISTING, _ADDED, _DELETED = 0, 1, 2

Digests = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class PaimonTables:
    """Reads a table's metadata tables through a store."""

    store: Get

    def log(self, state: State) -> Iterator[tuple[int, SnapshotId]]:
        """Yields the snapshots of the main branch: each was the current one until the next came."""
        snapshots = branches_of(files_in(state), state.location)[MAIN].snapshots
        return ((snapshots[number].time_ms, str(number)) for number in sorted(snapshots))

    def manifests(self, state: State, snapshot: SnapshotId | None) -> pa.Table:
        units = [unit for owner, unit in roots_of(state) if owner == snapshot]
        lists = [unit for unit in units if unit.kind is FileKind.MANIFEST_LIST]
        # The base list comes first, and names what was there before; the other what this snapshot changed.
        return pa.concat_tables(
            [
                MANIFESTS.empty_table(),
                *(self._listed(unit, state, snapshot if place else None) for place, unit in enumerate(lists)),
            ]
        )

    def units(self, state: State, snapshot: SnapshotId | None) -> list[Manifest]:
        rows = self.manifests(state, snapshot).select(["path", "length", "added_snapshot_id"]).to_pylist()
        return [Manifest(row["path"], row["length"], 0, row["added_snapshot_id"], 0) for row in rows]

    def entries(self, state: State) -> PaimonEntries:
        schema = branches_of(files_in(state), state.location)[MAIN].schema
        return PaimonEntries(self.store, Layout.of(state.location, schema))

    def live(self, state: State, snapshot: SnapshotId | None) -> PaimonEntries:
        """Returns a reader without the entries that another manifest of the snapshot takes away."""
        reader = self.entries(state)
        found = self.manifests(state, snapshot)
        taking = found.filter(pc.not_equal(found.column("deleted_data_files_count"), 0)).to_pylist()
        gone = [reader.removed(Manifest(row["path"], row["length"], 0, None, 0)) for row in taking]
        return replace(reader, gone=np.unique(np.concatenate(gone))) if gone else reader

    def _listed(self, unit: File, state: State, snapshot: SnapshotId | None) -> pa.Table:
        with opened(self.store, unit) as data:
            found = columns_of([data], _LISTED)[0]
        folder = f"{state.location}/manifest"
        count, added = len(found), None if snapshot is None else number_of(snapshot)
        columns = [
            pa.repeat(pa.scalar(0, _SHORT), count),
            pc.binary_join_element_wise(pa.repeat(folder, count), names_of(found, "_FILE_NAME"), "/"),
            sizes_of(found, "_FILE_SIZE"),
            pa.repeat(pa.scalar(added, pa.int64()), count),
            *(found.column(name).cast(_SHORT) for name in ("_NUM_ADDED_FILES", "_NUM_DELETED_FILES")),
        ]
        return pa.table(columns, schema=MANIFESTS)


@dataclass(frozen=True, slots=True)
class PaimonEntries:
    """Reads the entries of manifests. `gone`: digests of added entries that count no more, sorted."""

    store: Get
    layout: Layout
    gone: Digests = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(
            [("status", _SHORT), ("snapshot_id", pa.int64()), ("data_file", pa.struct(self._file_fields()))]
        )

    def __call__(self, manifest: Manifest, wanted: Collection[str] | None = None) -> pa.RecordBatch:
        found, places, paths = self._read(manifest)
        added = _EXISTING if manifest.snapshot is None else _ADDED
        status = pc.if_else(pc.equal(ops_of(found), 1), added, _DELETED).cast(_SHORT)
        snapshot = pa.repeat(pa.scalar(manifest.snapshot, pa.int64()), len(found))
        rows = pa.record_batch([status, snapshot, self._files(found, places, paths)], schema=self.schema)
        if not len(self.gone):
            return rows
        stays = ~np.isin(_digests(found, places, paths), self.gone) | (status.to_numpy() == _DELETED)
        return rows.filter(pa.array(stays))

    def removed(self, manifest: Manifest) -> Digests:
        """Returns the digests of what the manifest takes away."""
        found, places, paths = self._read(manifest)
        gone: Digests = _digests(found, places, paths)[ops_of(found).to_numpy() < 0]
        return gone

    def _read(self, manifest: Manifest) -> tuple[pa.RecordBatch, EntryFolders, pa.Array]:
        unit = File(FileKind.MANIFEST, manifest.key, manifest.size, opens=True)
        with opened(self.store, unit) as data:
            found = columns_of([data], _WANTED)[0]
        places = EntryFolders(found, self.layout)
        keys = pc.binary_join_element_wise(places.folders(), names_of(found, "_FILE._FILE_NAME"), "/")
        return found, places, or_external(keys, found, "_FILE._EXTERNAL_PATH")

    def _file_fields(self) -> list[tuple[str, pa.DataType]]:
        """Returns the fields of a file. An unpartitioned table has no `partition`: engines know no empty struct."""
        named = [("content", _SHORT), ("file_path", pa.string()), ("file_format", pa.string())]
        keys = [(name, pa.string()) for name, _ in self.layout.partition]
        return [*named, *([("partition", pa.struct(keys))] if keys else []), *((name, pa.int64()) for name in _NUMBERS)]

    def _files(self, found: pa.RecordBatch, places: EntryFolders, paths: pa.Array) -> pa.Array:
        columns = {
            "content": pa.repeat(pa.scalar(0, _SHORT), len(found)),
            "file_path": paths,
            "file_format": pc.ascii_upper(pc.replace_substring_regex(paths, r"^.*\.", "")),
            "partition": self._partitions(places),
            **{name: found.column(column) for name, column in _NUMBERS.items()},
        }
        names = [name for name, _ in self._file_fields()]
        return pa.StructArray.from_arrays([columns[name] for name in names], names=names)

    def _partitions(self, places: EntryFolders) -> pa.Array:
        """Returns the partition of each file, its values as SQL writes them."""
        kinds = tuple(kind for _, kind in self.layout.partition)
        texts = [
            [value_text(value, kind, False) for value, kind in zip(partition_values(said, kinds), kinds, strict=True)]
            for said, _ in places.pairs
        ]
        rows = pa.array([dict(zip((name for name, _ in self.layout.partition), each, strict=True)) for each in texts])
        return rows.take(pa.array(places.places))


def _digests(found: pa.RecordBatch, places: EntryFolders, paths: pa.Array) -> Digests:
    """Returns 64 bits of what identifies each entry: its path, and what it folds by."""
    folds = folds_of(found, places, extras_in(found.column("_FILE._EXTRA_FILES")))
    return folds ^ np.array([digest(path.encode()) for path in paths.to_pylist()], dtype=np.int64)
