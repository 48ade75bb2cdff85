"""The ancestry of a table's snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from firnline.model.snapshots import Snapshot, SnapshotId


class Graph:
    """Snapshots by id, and the walks from a head down.

    An expiry that keeps one snapshot a month leaves holes: the parent of a kept snapshot is gone. `bridges` remember,
    for such a snapshot, its nearest ancestor that stayed, so that the next decision still sees one history.
    """

    __slots__ = ("_bridges", "_by_id")

    def __init__(self, snapshots: Iterable[Snapshot], bridges: Mapping[SnapshotId, SnapshotId] | None = None) -> None:
        self._by_id: dict[SnapshotId, Snapshot] = {s.id: s for s in snapshots}
        self._bridges: Mapping[SnapshotId, SnapshotId] = bridges or {}

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

    @property
    def bridges(self) -> Mapping[SnapshotId, SnapshotId]:
        return self._bridges

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

    def history(self, head: SnapshotId) -> Iterator[Snapshot]:
        """Yields `head` and every ancestor that is still there, across the holes that are bridged."""
        seen: set[SnapshotId] = set()
        here: SnapshotId | None = head
        while here is not None and here not in seen:
            seen.add(here)
            snapshot = self._by_id.get(here)
            if snapshot is not None:
                yield snapshot
            here = self._older(here)

    def bridges_without(self, gone: Set[SnapshotId]) -> dict[SnapshotId, SnapshotId]:
        """Returns the bridges that the history needs once these snapshots are gone."""
        found: dict[SnapshotId, SnapshotId] = {}
        for snapshot in self._by_id.values():
            if snapshot.id not in gone:
                older = next(
                    (s.id for s in self.history(snapshot.id) if s.id != snapshot.id and s.id not in gone), None
                )
                if older is not None and older != snapshot.parent:
                    found[snapshot.id] = older
        return found

    def _older(self, here: SnapshotId) -> SnapshotId | None:
        """Returns the parent where it is there, else what bridges the hole below; a bridge may lead to another."""
        snapshot = self._by_id.get(here)
        if snapshot is not None and snapshot.parent in self._by_id:
            return snapshot.parent
        return self._bridges.get(here)
