"""The ancestry of a table's snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from firnline.model.snapshots import Snapshot, SnapshotId


class Graph:
    """Snapshots by id, and the walk from a head to its oldest ancestor that is still known."""

    __slots__ = ("_by_id",)

    def __init__(self, snapshots: Iterable[Snapshot]) -> None:
        self._by_id: dict[SnapshotId, Snapshot] = {s.id: s for s in snapshots}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Snapshot]:
        return iter(self._by_id.values())

    def __contains__(self, snapshot: object) -> bool:
        return snapshot in self._by_id

    def __getitem__(self, snapshot: SnapshotId) -> Snapshot:
        return self._by_id[snapshot]

    @property
    def by_id(self) -> Mapping[SnapshotId, Snapshot]:
        return self._by_id

    def lineage(self, head: SnapshotId) -> Iterator[Snapshot]:
        """Yields `head` and its ancestors, newest first; ends at the first parent that is not known.

        A damaged parent chain may loop: a snapshot is yielded once, so the walk always ends.
        """
        seen: set[SnapshotId] = set()
        here: SnapshotId | None = head
        while here is not None and here not in seen:
            snapshot = self._by_id.get(here)
            if snapshot is None:
                return
            seen.add(here)
            yield snapshot
            here = snapshot.parent
