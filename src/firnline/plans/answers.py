"""Answers to "why is this still here?", for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firnline.model.snapshots import SnapshotId
from firnline.model.times import format_instant

OWN_METADATA = "the table's own metadata"
SNAPSHOT, CHANGELOG, RUN, TABLE = "snapshot", "changelog", "run", "table"


@dataclass(frozen=True, slots=True)
class SnapshotAnswer:
    """Why one snapshot stays, or why nothing keeps it.

    `kind` is who needs a file: the snapshot itself, the changelog that outlives it, a run that took it out and may
    put it back, or another table, which then stands in the snapshot's place. A snapshot that was left as a changelog
    alone may have no known time.
    """

    snapshot: SnapshotId
    timestamp_ms: int | None
    kept: bool
    refs: tuple[str, ...]
    reasons: tuple[str, ...]
    kind: str = SNAPSHOT

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "snapshot": self.snapshot,
            "timestamp": None if self.timestamp_ms is None else format_instant(self.timestamp_ms),
            "kept": self.kept,
            "refs": list(self.refs),
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True, slots=True)
class Own:
    """What a metadata file is to its table, such as one tag, and whether and why that stays."""

    what: str
    kept: bool = True
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """Why something is here. `file` None: the question was about a snapshot. `needed_by` is newest first.

    `own`: the file is the table's metadata, and nothing else needs it.
    """

    table: str
    file: str | None
    needed_by: tuple[SnapshotAnswer, ...]
    own: Own | None = None

    @property
    def kept(self) -> bool:
        return self.own.kept if self.own is not None else any(each.kept for each in self.needed_by)

    def to_json(self) -> dict[str, Any]:
        answers = [each.to_json() for each in self.needed_by]
        if self.file is None:
            return {"table": self.table, **answers[0]}
        reasons = {} if self.own is None else {"reasons": [self.own.what, *self.own.reasons]}
        return {"table": self.table, "file": self.file, "kept": self.kept, "needed_by": answers, **reasons}
