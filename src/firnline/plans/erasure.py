"""What an erasure is about: which files, for which case and by whom, and the snapshots that lose them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firnline.model.snapshots import SnapshotId
from firnline.ports.erasing import Trimmed


@dataclass(frozen=True, slots=True)
class Erasure:
    """Files that go from a table, as it names them, for a `case` and `by` a person. `snapshots` are all that the table
    had when it was looked at, `trimmed` those that named the files; `units` are those that named them, and `written`
    those that name all but these.
    """

    files: tuple[str, ...]
    case: str
    by: str
    snapshots: tuple[SnapshotId, ...]
    trimmed: tuple[Trimmed, ...]
    units: tuple[str, ...]
    written: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "files": list(self.files),
            "case": self.case,
            "by": self.by,
            "snapshots": list(self.snapshots),
            "trimmed": [each.to_json() for each in self.trimmed],
            "units": list(self.units),
            "written": list(self.written),
        }

    @staticmethod
    def from_json(said: Mapping[str, Any]) -> Erasure:
        return Erasure(
            tuple(said["files"]),
            said["case"],
            said["by"],
            tuple(said["snapshots"]),
            tuple(Trimmed.from_json(each) for each in said["trimmed"]),
            tuple(said["units"]),
            tuple(said["written"]),
        )
