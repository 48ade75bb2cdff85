"""What a commit took out of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from firnline.model.snapshots import SnapshotId


@dataclass(frozen=True, slots=True)
class Removal:
    """What an expiry took out, and all that is needed to put it back.

    `snapshots` are objects as a history remembers them, each with its `snapshot-id`; `refs` say which snapshot each of
    them named. `payload` is the format's own, as JSON: nobody else looks inside.
    """

    snapshots: tuple[Mapping[str, Any], ...] = ()
    refs: Mapping[str, SnapshotId] = field(default_factory=dict)
    payload: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def ids(self) -> tuple[SnapshotId, ...]:
        return tuple(str(each["snapshot-id"]) for each in self.snapshots)

    def to_json(self) -> dict[str, Any]:
        return {"snapshots": list(self.snapshots), "refs": dict(self.refs), "payload": dict(self.payload)}

    @staticmethod
    def from_json(said: Mapping[str, Any]) -> Removal:
        refs = {str(name): str(snapshot) for name, snapshot in said["refs"].items()}
        return Removal(tuple(said["snapshots"]), refs, said["payload"])
