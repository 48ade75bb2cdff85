"""The metadata document of a small table, with every field that its format version requires."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol
from uuid import NAMESPACE_URL, uuid5

from firnline.model.files import FileKind
from firnline.model.snapshots import MAIN
from firnline.testing.manifests import ROWS_PER_FILE, Content, Item, WrittenManifest

_FIELDS = [{"id": 1, "name": "x", "required": False, "type": "long"}]
_SCHEMA = {"type": "struct", "schema-id": 0, "fields": _FIELDS}


@dataclass(frozen=True, slots=True)
class Change:
    """One snapshot as it was committed. `live` is what it holds, noted by the operation, not by the manifests."""

    id: int
    parent: int | None
    timestamp_ms: int
    operation: str
    manifests: tuple[WrittenManifest, ...]
    live: frozenset[Item]
    manifest_list: str | None = None

    @property
    def units(self) -> set[str]:
        return {each.path for each in self.manifests} | ({self.manifest_list} if self.manifest_list else set())

    def listed_in(self, path: str) -> Change:
        return replace(self, manifest_list=path)


@dataclass(frozen=True, slots=True)
class NamedStatistics:
    """Statistics that the document names for a snapshot."""

    snapshot: int
    kind: FileKind
    path: str
    size: int


class Described(Protocol):
    """What a document is made of."""

    location: str
    now_ms: int
    properties: dict[str, str]
    changes: dict[int, Change]
    heads: dict[str, dict[str, Any]]
    log: list[tuple[int, int]]
    named: list[NamedStatistics]
    documents: list[str]

    @property
    def version(self) -> int: ...


def document_of(table: Described) -> dict[str, Any]:
    """Returns the document of the table as it is now."""
    current = table.heads.get(MAIN, {}).get("snapshot-id", -1)
    document: dict[str, Any] = {
        "format-version": table.version,
        "table-uuid": str(uuid5(NAMESPACE_URL, table.location)),
        "location": table.location,
        "last-updated-ms": table.now_ms,
        "last-column-id": 1,
        "schemas": [_SCHEMA],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": dict(table.properties),
        "current-snapshot-id": current,
        "refs": table.heads,
        "snapshots": [_snapshot(change, table.version) for change in table.changes.values()],
        "statistics": [_statistics(each) for each in table.named if each.kind is FileKind.STATISTICS],
        "partition-statistics": [_named(each) for each in table.named if each.kind is not FileKind.STATISTICS],
        "snapshot-log": [{"timestamp-ms": at, "snapshot-id": snapshot} for at, snapshot in table.log],
        "metadata-log": [{"timestamp-ms": table.now_ms, "metadata-file": path} for path in table.documents],
    }
    return document | _of_version(table.version, table.changes)


def _of_version(version: int, changes: Mapping[int, Change]) -> dict[str, Any]:
    if version == 1:
        return {"schema": _SCHEMA, "partition-spec": []}
    if version == 2:
        return {"last-sequence-number": len(changes)}
    return {"last-sequence-number": len(changes), "next-row-id": ROWS_PER_FILE * len(changes)}


def _snapshot(change: Change, version: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "snapshot-id": change.id,
        "timestamp-ms": change.timestamp_ms,
        "summary": {"operation": change.operation, "total-data-files": str(_data_files(change))},
        "schema-id": 0,
    }
    if change.parent is not None:
        fields["parent-snapshot-id"] = change.parent
    if version > 1:
        fields["sequence-number"] = 1
    if version > 2:
        fields |= {"first-row-id": 0, "added-rows": 0}
    return fields | _units(change.manifests, change.manifest_list)


def _data_files(change: Change) -> int:
    return sum(item.content is Content.DATA for item in change.live)


def _units(manifests: Sequence[WrittenManifest], manifest_list: str | None) -> dict[str, Any]:
    if manifest_list is None:
        return {"manifests": [each.path for each in manifests]}
    return {"manifest-list": manifest_list}


def _named(each: NamedStatistics) -> dict[str, Any]:
    return {"snapshot-id": each.snapshot, "statistics-path": each.path, "file-size-in-bytes": each.size}


def _statistics(each: NamedStatistics) -> dict[str, Any]:
    return _named(each) | {"file-footer-size-in-bytes": 8, "blob-metadata": []}
