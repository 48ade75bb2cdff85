"""Objects by their names: fetched, decoded, and every trouble told with the object's key."""

from __future__ import annotations

from firnline.formats.damage import named
from firnline.formats.icechunk import names
from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.formats.icechunk.reading.manifest import ChunkRefs, ManifestFile, read_manifest
from firnline.formats.icechunk.reading.snapshot import SnapshotObject, read_lineage, read_snapshot
from firnline.formats.icechunk.reading.transaction import refuse_other_log
from firnline.model.locations import join
from firnline.ports.stores import Get


def snapshot_at(store: Get, location: str, snapshot: str) -> SnapshotObject:
    """Returns a snapshot's own object. Raises UnreadableMetadata or UnsupportedFormat."""
    key = join(location, names.SNAPSHOTS, snapshot)
    with named("snapshot", key):
        return read_snapshot(store.get(key), snapshot)


def lineage_at(store: Get, location: str, snapshot: str) -> HistorySnapshot:
    """Returns what a snapshot of version 1 says of the history. Raises UnreadableMetadata or UnsupportedFormat."""
    key = join(location, names.SNAPSHOTS, snapshot)
    with named("snapshot", key):
        return read_lineage(store.get(key), snapshot)


def chunks_at(store: Get, location: str, manifest: ManifestFile) -> ChunkRefs:
    """Returns what a manifest names. Raises UnreadableMetadata, also where it is another than the snapshot says."""
    key = join(location, names.MANIFESTS, manifest.id)
    with named("manifest", key):
        return read_manifest(store.get(key), manifest)


def refuse_unreadable_log(store: Get, location: str, snapshot: str) -> None:
    """Raises UnreadableMetadata unless the snapshot's transaction log is there and sound."""
    key = join(location, names.TRANSACTIONS, snapshot)
    with named("transaction log", key):
        refuse_other_log(store.get(key), snapshot)
