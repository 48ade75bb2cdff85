"""Icechunk's snapshots as Iceberg writes a Snapshot: what a table's history remembers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from firnline.formats.icechunk import names
from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.formats.icechunk.reading.repository import IcechunkRepository
from firnline.model.locations import join


def snapshot_objects(repository: IcechunkRepository) -> Iterator[Mapping[str, Any]]:
    """Yields every snapshot. Ids are letters here, and no numbers."""
    return (snapshot_object(repository, each) for each in repository.snapshots.values())


def snapshot_object(repository: IcechunkRepository, said: HistorySnapshot) -> Mapping[str, Any]:
    """Returns a snapshot. Its own object stands for the manifest list: it names the manifests."""
    before = {} if said.parent is None else {"parent-snapshot-id": said.parent}
    return {
        "snapshot-id": said.id,
        **before,
        "timestamp-ms": said.flushed_us // 1000,
        "summary": {"operation": "commit", "message": said.message},
        "manifest-list": join(repository.location, names.SNAPSHOTS, said.id),
    }
