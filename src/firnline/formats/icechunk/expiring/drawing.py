"""A history before and after it is rewritten, for a drawing: before with every snapshot and what becomes of it, after
with those that refs still lead to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from firnline.formats.icechunk.expiring.ancestry import RefHistory
from firnline.formats.icechunk.expiring.rewriting import Rewriting
from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.model.drawing import DrawnSnapshot, HistoryDrawing, SnapshotFate

_GONE = "no ref leads to"


def drawn(rewriting: Rewriting) -> HistoryDrawing:
    """Returns the history before and after."""
    fates = {name: _fate(name, each, rewriting) for name, each in rewriting.before.snapshots.items()}
    after = rewriting.after.without(rewriting.dangling)
    return HistoryDrawing(tuple(_snapshots(rewriting.before, fates)), tuple(_snapshots(after, fates)), _GONE)


def _snapshots(history: RefHistory, fates: Mapping[str, SnapshotFate]) -> Iterator[DrawnSnapshot]:
    for each in sorted(history.snapshots.values(), key=lambda each: (each.flushed_us, each.id)):
        yield DrawnSnapshot(each.id, each.parent, each.flushed_us // 1000, fates[each.id])


def _fate(name: str, snapshot: HistorySnapshot, rewriting: Rewriting) -> SnapshotFate:
    if name in rewriting.dangling:
        return SnapshotFate.GOES if name in rewriting.released else SnapshotFate.UNREFERENCED
    if name in rewriting.parents:
        return SnapshotFate.FOLLOWS_ROOT
    stays = name in rewriting.survivors or snapshot.parent is None
    return SnapshotFate.STAYS if stays else SnapshotFate.HELD
