"""Which snapshots of a table, live or of a tier, name a data file; and what stands in the way of erasing it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from shlex import quote
from typing import Any

from firnline.errors import RefusedForSafety, UnsupportedFormat
from firnline.model.snapshots import SnapshotId
from firnline.model.times import format_instant
from firnline.ops.reachability.live_roots import forbidden
from firnline.ports.erasing import ErasesFiles, Naming
from firnline.ports.formats import State, TableFormat, UndoWindow
from firnline.tiers.places import TierPlaces


@dataclass(frozen=True, slots=True)
class TableLoss:
    """What one table would lose: `tier` is where it is. `bundles` are objects of a deep tier in which the files lie
    together with others; `refused` is why nothing can be erased there now.
    """

    tier: str
    state: State
    naming: Naming
    bundles: tuple[str, ...] = ()
    refused: str | None = None

    @property
    def is_nothing(self) -> bool:
        return not self.naming.units and not self.bundles

    def to_json(self) -> dict[str, Any]:
        return {
            "tier": self.tier,
            "table": self.state.table,
            "files": [{"path": each.path, "bytes": each.size, "rows": each.rows} for each in self.naming.files],
            "snapshots": [_snapshot_json(self.state, each) for each in newest_first(self.state, self.naming.losing)],
            "mentioned_by": newest_first(self.state, self.naming.mentioning),
            "manifests": len(self.naming.units),
            "bundles": list(self.bundles),
            "refused": self.refused,
        }


def newest_first(state: State, snapshots: Set[SnapshotId]) -> list[SnapshotId]:
    return sorted(snapshots, key=lambda each: (state.graph[each].timestamp_ms, each), reverse=True)


def refs_of(state: State, snapshot: SnapshotId) -> list[str]:
    return sorted(ref.name for ref in state.refs.values() if ref.snapshot == snapshot)


def _snapshot_json(state: State, snapshot: SnapshotId) -> dict[str, Any]:
    at = format_instant(state.graph[snapshot].timestamp_ms)
    return {"snapshot": snapshot, "timestamp": at, "refs": refs_of(state, snapshot)}


def places_in(paths: Iterable[str], root: str, others: Sequence[str]) -> frozenset[str]:
    """Returns where files of a live table may lie in the tier at `root`. What came by way of other tiers lies deeper
    below.
    """
    return frozenset(TierPlaces(root).place(way) for path in paths for way in _ways(path, others))


def _ways(path: str, roots: Sequence[str]) -> Iterator[str]:
    yield path
    for root in roots:
        yield from _ways(TierPlaces(root).place(path), [each for each in roots if each != root])


def erases(table_format: TableFormat, table: str) -> ErasesFiles:
    """Returns the format. Raises UnsupportedFormat where nothing can be taken out of snapshots that stay."""
    if isinstance(table_format, ErasesFiles):
        return table_format
    raise UnsupportedFormat(
        f"{table}: no file can be taken out of snapshots of {table_format.name} tables",
        hint="delete the rows with an engine, then expire the snapshots that have them; nothing was changed",
    )


def refuse_kept(state: State, naming: Set[SnapshotId], now_ms: int) -> None:
    """Raises RefusedForSafety where a catalog takes no snapshot in the place of another, where the table or a hold
    forbids every removal, or a hold is on a snapshot that is among those `naming` the files: it is to stay as it is.
    """
    if not naming:
        return
    if state.capabilities.undo is not UndoWindow.AFTER_COMMIT:
        raise RefusedForSafety(
            f"the catalog of {state.table} takes no snapshot in the place of another",
            hint="delete the rows with an engine and expire every snapshot that names the file, with --grace 0s; then "
            "erase again, for the tiers",
        )
    reason = forbidden(state, now_ms, handed_on=True)
    if reason:
        raise RefusedForSafety(f"nothing of {state.table} may be removed now: {reason}", hint="lift that first")
    for hold in state.holds:
        if hold.snapshot in naming and hold.in_force(now_ms):
            raise RefusedForSafety(
                f"the hold {hold.name} is on {hold.snapshot} of {state.table}, which names the file",
                hint=f"`firnline hold release {quote(state.table)} {quote(hold.name)}` ends it, if erasure goes first",
            )
