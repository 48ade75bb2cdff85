"""What the metadata document itself names for a snapshot: its manifest list or manifests, and its statistics."""

from __future__ import annotations

from collections.abc import Iterator, Set

from firnline.formats.iceberg import fields
from firnline.formats.iceberg.counts import claim_of
from firnline.formats.iceberg.paths import plain_path
from firnline.model.files import File, FileKind
from firnline.model.snapshots import SnapshotId
from firnline.ports.formats import State


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
