"""A repository's own metadata as rows: what SQL shows as `manifests`, `entries` and `files`.

Ids of snapshots are no numbers here, so the columns that hold numbers elsewhere are empty.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa

from firnline.formats.icechunk import names
from firnline.formats.icechunk.reading.manifest import ManifestFile
from firnline.formats.icechunk.reading.objects import chunks_at, snapshot_at
from firnline.formats.icechunk.state import repository_in
from firnline.formats.icechunk.walking.expand import chunk_keys
from firnline.model.locations import join
from firnline.model.snapshots import SnapshotId
from firnline.ports.formats import State
from firnline.ports.inspect import Manifest
from firnline.ports.stores import Get

_SHORT = pa.int32()
MANIFESTS = pa.schema([("content", _SHORT), ("path", pa.string()), ("length", pa.int64()), ("references", pa.int64())])
_FILE = pa.struct([("content", _SHORT), ("file_path", pa.string()), ("file_size_in_bytes", pa.int64())])
_ENTRY = pa.schema([("status", _SHORT), ("snapshot_id", pa.int64()), ("data_file", _FILE)])


@dataclass(frozen=True, slots=True)
class IcechunkTables:
    """Reads a repository's metadata tables through a store."""

    store: Get

    def log(self, state: State) -> Iterator[tuple[int, SnapshotId]]:
        """Yields the snapshots of the main branch: each was the current one until the next came."""
        line = [] if state.current is None else list(repository_in(state).ancestry(state.current))
        return ((each.flushed_us // 1000, each.id) for each in reversed(line))

    def manifests(self, state: State, snapshot: SnapshotId | None) -> pa.Table:
        found = () if snapshot is None else snapshot_at(self.store, state.location, snapshot).manifests
        columns = [
            [0] * len(found),
            [join(state.location, names.MANIFESTS, each.id) for each in found],
            [each.size for each in found],
            [each.refs for each in found],
        ]
        return pa.table([pa.array(each, kind) for each, kind in zip(columns, MANIFESTS.types, strict=True)], MANIFESTS)

    def units(self, state: State, snapshot: SnapshotId | None) -> list[Manifest]:
        rows = self.manifests(state, snapshot).to_pylist()
        return [Manifest(row["path"], row["length"], 0, None, 0) for row in rows]

    def entries(self, state: State) -> IcechunkEntries:
        return IcechunkEntries(self.store, state.location)

    def live(self, state: State, snapshot: SnapshotId | None) -> IcechunkEntries:
        """Returns the same reader: no manifest takes anything away from another."""
        return self.entries(state)


@dataclass(frozen=True, slots=True)
class IcechunkEntries:
    """Reads the references of manifests to chunks that are objects of the repository."""

    store: Get
    location: str

    @property
    def schema(self) -> pa.Schema:
        return _ENTRY

    def __call__(self, manifest: Manifest, wanted: Collection[str] | None = None) -> pa.RecordBatch:
        said = ManifestFile(manifest.key.rpartition("/")[2], manifest.size, None)
        found = chunks_at(self.store, self.location, said)
        keys, count = chunk_keys(self.location, found), len(found.ids)
        none = pa.repeat(pa.scalar(0, _SHORT), count)
        files = pa.StructArray.from_arrays([none, keys, pa.array(found.ends)], fields=list(_FILE))
        return pa.record_batch([none, pa.nulls(count, pa.int64()), files], schema=_ENTRY)
