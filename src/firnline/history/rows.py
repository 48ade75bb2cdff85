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
    parent, manifest_list = parent_of(entry), entry.get("manifest-list")
    summary = dict(summary_of(entry))
    operation = summary.pop("operation", None)
    return SnapshotRow(
        committed_at_ms=time_of(entry),
        snapshot_id=id_of(entry),
        parent_id=None if parent is None else str(parent),
        operation=operation,
        manifest_list=None if manifest_list is None else str(manifest_list),
        summary=summary,
        expired=expired,
    )


def parent_of(entry: Entry) -> int | str | None:
    """Returns the parent's id; some writers say -1 where there is none."""
    parent = entry.get("parent-snapshot-id")
    return None if parent in (None, -1) else parent


def summary_of(entry: Entry) -> Mapping[str, str]:
    """Returns the summary as text for text, the operation in it; empty where the snapshot has none."""
    said = entry.get("summary")
    if not isinstance(said, dict):
        return {}
    return said if all(type(value) is str for value in said.values()) else {n: str(v) for n, v in said.items()}
