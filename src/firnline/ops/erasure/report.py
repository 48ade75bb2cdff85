"""What an erasure would take from each table, and how far it came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firnline.model.snapshots import SnapshotId
from firnline.ops.erasure.finding import TableLoss
from firnline.ops.runs.status import RunStatus
from firnline.ops.tiers.waking import Awake

Starts = frozenset[tuple[SnapshotId, str]]
"""What each snapshot of a table begins with."""


@dataclass(frozen=True, slots=True)
class ErasurePlan:
    """Files that shall go, as the live table names them, and what each table loses with them; `notes` is what no purge
    reaches.
    """

    files: tuple[str, ...]
    tables: tuple[TableLoss, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_nothing(self) -> bool:
        return all(each.is_nothing for each in self.tables)

    def to_json(self) -> dict[str, Any]:
        return {
            "files": list(self.files),
            "tables": [each.to_json() for each in self.tables],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class ErasedFrom:
    """What became of the files in one table: the last run that erased them there, None where it named none. `left` are
    those that lie there still although no snapshot names them; `repacked` is how many bundles were packed anew, and
    `awaited` how many must come first. `came` are snapshots that name them and came while other tables were worked
    on; `starts` tells which were looked at before.
    """

    tier: str
    table: str
    run: RunStatus | None = None
    left: tuple[str, ...] = ()
    repacked: int = 0
    awaited: Awake | None = None
    came: tuple[SnapshotId, ...] = ()
    starts: Starts = frozenset()

    @property
    def waits(self) -> bool:
        is_open = self.run is not None and not self.run.run.is_finished
        return is_open or self.awaited is not None or bool(self.came)

    def to_json(self) -> dict[str, Any]:
        waits = None if self.awaited is None else {"readable": self.awaited.readable, "of": self.awaited.bundles.files}
        return {
            "tier": self.tier,
            "table": self.table,
            "run": None if self.run is None else self.run.id,
            "state": None if self.run is None else self.run.state.value,
            "waits_for": None if self.run is None else self.run.waits,
            "left": list(self.left),
            "repacked": self.repacked,
            "bundles_awaited": waits,
            "came_meanwhile": list(self.came),
        }


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """How far the erasure of some files came."""

    files: tuple[str, ...]
    tables: tuple[ErasedFrom, ...]

    @property
    def is_done(self) -> bool:
        return not any(each.waits or each.left for each in self.tables)

    def to_json(self) -> dict[str, Any]:
        return {
            "files": list(self.files),
            "tables": [each.to_json() for each in self.tables],
            "done": self.is_done,
        }
