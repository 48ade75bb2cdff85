"""Snapshots: one version of a repository, and the manifests that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from firnline.formats.icechunk.ids import WIDTH, Octets, name_of, names_of
from firnline.formats.icechunk.reading.damage import CorruptIcechunk, UnsupportedIcechunk
from firnline.formats.icechunk.reading.envelope import ObjectType, opened
from firnline.formats.icechunk.reading.flat import Field, FlatBuffer, FlatTables, Numbers, TableLayout
from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.formats.icechunk.reading.manifest import ManifestFile

_SNAPSHOT: Final = TableLayout(
    "Snapshot",
    (
        Field("id", WIDTH, required=True),
        Field("parent_id", WIDTH),
        Field("nodes", required=True),
        Field("flushed_at", 8),
        Field("message", required=True),
        Field("metadata", required=True),
        Field("manifest_files", required=True),
        Field("manifest_files_v2"),
        Field("extra", reserved=True),
    ),
)
_MANIFEST_FILE: Final = TableLayout(
    "ManifestFileInfoV2",
    (
        Field("id", WIDTH, required=True),
        Field("size_bytes", 8, required=True),
        Field("num_chunk_refs"),
        Field("extra", reserved=True),
    ),
)
_NODE: Final = TableLayout(
    "NodeSnapshot",
    (
        Field("id", 8, required=True),
        Field("path", required=True),
        Field("user_data", required=True),
        Field("node_data_type", 1, required=True),
        Field("node_data", required=True),
        Field("extra", reserved=True),
    ),
)
_ARRAY: Final = TableLayout(
    "ArrayNodeData",
    (Field("shape", required=True), Field("dimension_names"), Field("manifests", required=True), Field("shape_v2")),
)
_MANIFEST_REF: Final = TableLayout(
    "ManifestRef", (Field("object_id", WIDTH, required=True), Field("extents", required=True))
)
_IS_ARRAY, _IS_GROUP = 1, 2
_STRUCT, _SIZE_AT, _REFS_AT = 32, 16, 24
"""How version 1 writes what it says of a manifest: the id, then where in so many bytes the two numbers lie."""


@dataclass(frozen=True, slots=True)
class SnapshotObject:
    """What a snapshot's own object says. From version 2 on it does not tell its parent: `repo` does."""

    spec: int
    history: HistorySnapshot
    manifests: tuple[ManifestFile, ...]


def read_snapshot(data: bytes, name: str) -> SnapshotObject:
    """Returns the snapshot. Raises CorruptIcechunk unless it is the one of this name, and lists every manifest that one
    of its arrays needs.
    """
    envelope = opened(data, ObjectType.SNAPSHOT)
    buffer = FlatBuffer(envelope.body)
    root = buffer.root(_SNAPSHOT)
    history = _history(root, name)
    if envelope.spec > 1 and history.parent is not None:
        raise CorruptIcechunk(f"it names a parent, {history.parent}, which only snapshots of version 1 do")
    return SnapshotObject(envelope.spec, history, _manifests(buffer, root, envelope.spec))


def read_lineage(data: bytes, name: str) -> HistorySnapshot:
    """Returns what a snapshot of version 1 says of the history, and looks at nothing else of it: what needs its
    manifests opens it again. Raises CorruptIcechunk unless it is the one of this name.
    """
    envelope = opened(data, ObjectType.SNAPSHOT)
    if envelope.spec != 1:
        raise UnsupportedIcechunk(f"it is of version {envelope.spec}, where refs are of version 1")
    return _history(FlatBuffer(envelope.body).root(_SNAPSHOT), name)


def _history(root: FlatTables, name: str) -> HistorySnapshot:
    if (own := name_of(root.rows("id", WIDTH).tobytes())) != name:
        raise CorruptIcechunk(f"it says that its id is {own}")
    parent = name_of(root.rows("parent_id", WIDTH).tobytes()) if root.has("parent_id").all() else None
    return HistorySnapshot(own, parent, int(root.numbers("flushed_at", "<u8")[0]), root.texts("message")[0])


def _manifests(buffer: FlatBuffer, root: FlatTables, spec: int) -> tuple[ManifestFile, ...]:
    ids, sizes, refs = _in_version_1(buffer, root) if spec == 1 else _in_version_2(root)
    names = names_of(ids)
    if len(set(names)) < len(names):
        raise CorruptIcechunk("it lists a manifest twice")
    lost = _needed_by_arrays(root) - set(names)
    if lost:
        raise CorruptIcechunk(f"an array needs the manifest {min(lost)}, which is not in its list")
    return tuple(map(ManifestFile, names, sizes.tolist(), refs.tolist()))


def _in_version_1(buffer: FlatBuffer, root: FlatTables) -> tuple[Octets, Numbers, Numbers]:
    if root.has("manifest_files_v2").any():
        raise UnsupportedIcechunk("it is of version 1 and lists its manifests as version 2 does")
    at = root.vectors("manifest_files", _STRUCT, 8).places(_STRUCT)
    return buffer.rows(at, WIDTH), buffer.numbers(at + _SIZE_AT, "<u8"), buffer.numbers(at + _REFS_AT, "<u4")


def _in_version_2(root: FlatTables) -> tuple[Octets, Numbers, Numbers]:
    if root.vectors("manifest_files", _STRUCT, 8).counts.any() or not root.has("manifest_files_v2").all():
        raise UnsupportedIcechunk("it is of version 2 and lists its manifests as version 1 does")
    files = root.listed("manifest_files_v2", _MANIFEST_FILE)
    return files.rows("id", WIDTH), files.numbers("size_bytes", "<u8"), files.numbers("num_chunk_refs", "<u4")


def _needed_by_arrays(root: FlatTables) -> set[str]:
    """Returns the manifests that arrays name: told a second time, so that the list of all cannot lose one."""
    nodes = root.listed("nodes", _NODE)
    kinds = nodes.numbers("node_data_type", "<u1")
    if strange := set(kinds.tolist()) - {_IS_ARRAY, _IS_GROUP}:
        raise UnsupportedIcechunk(f"a node of kind {min(strange)}, which is neither an array nor a group")
    arrays = nodes.picked(np.asarray(kinds == _IS_ARRAY)).named("node_data", _ARRAY)
    return set(names_of(arrays.listed("manifests", _MANIFEST_REF).rows("object_id", WIDTH)))
