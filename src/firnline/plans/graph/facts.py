"""The graph of a table's snapshots before and after a run, as facts: text, SVG and JSON are made from these alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from firnline.model.files import Tally
from firnline.model.snapshots import SnapshotId
from firnline.model.times import format_instant

if TYPE_CHECKING:
    from firnline.model.drawing import DrawnSnapshot, HistoryDrawing, SnapshotFate


class LabelKind(StrEnum):
    """What names a snapshot, or keeps it whatever the policy says; in the order in which they are told."""

    BRANCH = "branch"
    TAG = "tag"
    HOLD = "hold"
    PIN = "pin"
    TIER = "tier"
    """The tier that it is handed to before it goes."""


_ORDER = {kind: place for place, kind in enumerate(LabelKind)}


@dataclass(frozen=True, slots=True)
class GraphLabel:
    """A name at a snapshot. `goes`: the run takes the name away; `made`: the run gives it."""

    kind: LabelKind
    name: str
    goes: bool = False
    made: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind.value, "name": self.name, "goes": self.goes, "made": self.made}

    @property
    def place(self) -> tuple[int, str]:
        return _ORDER[self.kind], self.name


@dataclass(frozen=True, slots=True)
class GraphSnapshot:
    """A snapshot in a graph: the one that it is drawn under, what becomes of it, its names, and why it stays."""

    id: SnapshotId
    parent: SnapshotId | None
    timestamp_ms: int
    fate: SnapshotFate
    labels: tuple[GraphLabel, ...] = ()
    reasons: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "snapshot": self.id,
            "parent": self.parent,
            "timestamp": format_instant(self.timestamp_ms),
            "fate": self.fate.value,
            "labels": [each.to_json() for each in self.labels],
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True, slots=True)
class SnapshotGraph:
    """All snapshots of a table before a run, and those that are left after it, the oldest first. `gone` says of the
    others what they are then. `live` are the files of the present snapshot as metadata alone tells; None where it does
    not.
    """

    table: str
    format: str
    now_ms: int
    policy: str
    before: tuple[GraphSnapshot, ...]
    after: tuple[GraphSnapshot, ...]
    gone: str
    live: Tally | None = None

    @property
    def going(self) -> int:
        """How many snapshots the graph does not have afterwards."""
        return len(self.before) - len(self.after)

    def to_json(self) -> dict[str, Any]:
        """Returns the contract of `graph --json`: ids are strings, instants are ISO 8601."""
        return {
            "table": self.table,
            "format": self.format,
            "now": format_instant(self.now_ms),
            "policy": self.policy,
            "before": [each.to_json() for each in self.before],
            "after": [each.to_json() for each in self.after],
            "gone": self.going,
            "live": None if self.live is None else {"files": self.live.files, "bytes": self.live.bytes},
        }

    def __str__(self) -> str:
        from firnline.plans.graph.text import graph_page

        return graph_page(self).to_text()

    def _repr_html_(self) -> str:
        from firnline.plans.html.graph import graph_html

        return graph_html(self)


Labels = Mapping[SnapshotId, Sequence[GraphLabel]]
Reasons = Mapping[SnapshotId, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class GraphTitle:
    """What a graph is of: a table, and the policy by which something would go at an instant."""

    table: str
    format: str
    now_ms: int
    policy: str
    live: Tally | None = None


def labelled(title: GraphTitle, drawing: HistoryDrawing, labels: Labels, reasons: Reasons) -> SnapshotGraph:
    """Returns the graph of a drawn history: with every label before, afterwards without those that go, and beforehand
    without those that the run gives.
    """
    before = tuple(_snapshots(drawing.before, labels, reasons, after=False))
    after = tuple(_snapshots(drawing.after, labels, reasons, after=True))
    return SnapshotGraph(title.table, title.format, title.now_ms, title.policy, before, after, drawing.gone, title.live)


def _snapshots(
    drawn: Iterable[DrawnSnapshot], labels: Labels, reasons: Reasons, *, after: bool
) -> Iterable[GraphSnapshot]:
    for each in drawn:
        shown = (label for label in labels.get(each.id, ()) if not (label.goes if after else label.made))
        told = tuple(sorted(shown, key=lambda label: label.place))
        yield GraphSnapshot(each.id, each.parent, each.timestamp_ms, each.fate, told, reasons.get(each.id, ()))
