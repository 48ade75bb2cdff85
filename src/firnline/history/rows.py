"""A snapshot as a row, with the columns of Iceberg's own `snapshots` table and whether it expired."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from firnline.history.listing import Entry, id_of, time_of


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    committed_at_ms: int
    snapshot_id: str
    parent_id: str | None
    operation: str | None
    manifest_list: str | None
    summary: Mapping[str, str]
    expired: bool


def rows_of(entries: Iterable[Entry], *, expired: bool) -> Iterator[SnapshotRow]:
    return (row_of(entry, expired=expired) for entry in entries)


def row_of(entry: Entry, *, expired: bool) -> SnapshotRow:
    """Returns the row. As in Iceberg's table, the operation stands beside the summary and not in it."""
    parent, manifest_list = entry.get("parent-snapshot-id"), entry.get("manifest-list")
    said = entry.get("summary")
    summary = {str(name): str(value) for name, value in said.items()} if isinstance(said, dict) else {}
    operation = summary.pop("operation", None)
    return SnapshotRow(
        committed_at_ms=time_of(entry),
        snapshot_id=id_of(entry),
        parent_id=None if parent in (None, -1) else str(parent),
        operation=operation,
        manifest_list=None if manifest_list is None else str(manifest_list),
        summary=summary,
        expired=expired,
    )
