"""Holds and pins: what must stay whatever the policy says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firnline.model.snapshots import SnapshotId
from firnline.model.times import format_instant


@dataclass(frozen=True, slots=True)
class Hold:
    """An operator's word that a snapshot must stay; `snapshot` None holds the whole table.

    It is in force until `until_ms` (None: until it is released). The boundary itself still holds. `damage` says why one
    cannot be read: nobody knows what it protects, so it holds the whole table until it is released.
    """

    name: str
    who: str
    why: str
    snapshot: SnapshotId | None
    until_ms: int | None = None
    damage: str = ""

    def in_force(self, now_ms: int) -> bool:
        return self.until_ms is None or now_ms <= self.until_ms

    def to_json(self) -> dict[str, Any]:
        """Returns the contract of `hold list --json`."""
        until = None if self.until_ms is None else format_instant(self.until_ms)
        said = {"who": self.who, "why": self.why, "snapshot": self.snapshot, "until": until}
        return {"name": self.name, **said, "damage": self.damage or None}


@dataclass(frozen=True, slots=True)
class Pin:
    """A snapshot that a program still needs: a consumer, a streaming offset.

    It counts until `until_ms` (None: as long as it is there). The boundary itself still counts. `moved_ms` is when the
    program last said where it stands; None where that is not known. `rule` is what its reason is grouped by.
    """

    snapshot: SnapshotId
    by: str
    until_ms: int | None = None
    moved_ms: int | None = None
    rule: str = "pin"

    def in_force(self, now_ms: int) -> bool:
        return self.until_ms is None or now_ms <= self.until_ms


def hold_tag(hold: str) -> str:
    """Returns the name of the tag that makes other engines respect a hold."""
    return f"firnline-hold-{hold}"
