"""The graph of a table before and after a run: from what was decided, without a look at any file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Set

from firnline.model.drawing import DrawnSnapshot, HistoryDrawing, SnapshotFate
from firnline.model.graph import Graph
from firnline.model.holds import hold_tag
from firnline.model.snapshots import Ref, RefKind, SnapshotId
from firnline.ops.runs.decision import Settled
from firnline.plans.graph.facts import GraphLabel, GraphTitle, LabelKind, SnapshotGraph, labelled
from firnline.plans.plan import Plan
from firnline.policy.readers import READER
from firnline.ports.abilities import DrawsHistory
from firnline.ports.formats import State, TableFormat

_PINS = ("pin", READER)
_GONE = "gone from the metadata"


def graph_of(table_format: TableFormat, state: State, settled: Settled, plan: Plan) -> SnapshotGraph:
    """Returns the graph with all that names or keeps a snapshot; what a commit leaves is the format's own word, where
    its commits rewrite the history.
    """
    expired, refs = set(settled.decision.expired), set(settled.decision.expired_refs)
    if (expired or refs) and isinstance(table_format, DrawsHistory):
        drawing = table_format.drawing(state, expired, refs)
    else:
        drawing = _taken_out(state.graph, expired)
    labels: defaultdict[SnapshotId, list[GraphLabel]] = defaultdict(list)
    for snapshot, label in (*_labels(state, settled, plan), *_pins(table_format, state, settled)):
        labels[snapshot].append(label)
    reasons = {each.id: each.reasons for each in plan.keep}
    title = GraphTitle(plan.table, plan.format, plan.now_ms, plan.policy, plan.live)
    return labelled(title, drawing, labels, reasons)


def _taken_out(graph: Graph, expired: Set[SnapshotId]) -> HistoryDrawing:
    """Returns the history without what expires: what is left follows its nearest ancestor that is left."""
    ordered = sorted(graph, key=lambda each: (each.timestamp_ms, each.id))
    older = {each.id: each.parent if each.parent in graph else graph.bridges.get(each.id) for each in ordered}
    bridges = graph.bridges_without(expired)
    left = {each: bridges.get(each, None if parent in expired else parent) for each, parent in older.items()}
    before = (
        DrawnSnapshot(
            each.id, older[each.id], each.timestamp_ms, SnapshotFate.GOES if each.id in expired else SnapshotFate.STAYS
        )
        for each in ordered
    )
    after = (
        DrawnSnapshot(each.id, left[each.id], each.timestamp_ms, SnapshotFate.STAYS)
        for each in ordered
        if each.id not in expired
    )
    return HistoryDrawing(tuple(before), tuple(after), _GONE)


def _labels(state: State, settled: Settled, plan: Plan) -> Iterator[tuple[SnapshotId, GraphLabel]]:
    """Yields what names each snapshot. The tag that other engines see in place of a hold is told as the hold."""
    now_ms = settled.decision.now_ms
    held = {hold.name: hold for hold in state.holds if hold.in_force(now_ms) and hold.snapshot is not None}
    tags = set(map(hold_tag, held))
    for ref in state.refs.values():
        if ref.name not in tags:
            yield ref.snapshot, _named(ref, ref.name in plan.expire_refs)
    for hold in held.values():
        yield str(hold.snapshot), GraphLabel(LabelKind.HOLD, f"{hold.name} by {hold.who}")
    for snapshot, tag in plan.tagged.items():
        yield snapshot, GraphLabel(LabelKind.TAG, tag, made=True)
    for snapshot in () if plan.archive is None else plan.archive.snapshots:
        yield snapshot, GraphLabel(LabelKind.TIER, plan.archive.tier if plan.archive else "")


def _pins(table_format: TableFormat, state: State, settled: Settled) -> Iterator[tuple[SnapshotId, GraphLabel]]:
    """Yields what programs still need. Where commits rewrite the history, the first snapshot of a line is pinned by the
    format itself, and by no program: that is not told.
    """
    rewrites = isinstance(table_format, DrawsHistory)
    for snapshot, reasons in settled.decision.kept.items():
        pins = [each.detail for each in reasons if each.rule in _PINS]
        if pins and not (rewrites and state.graph[snapshot].parent is None):
            yield from ((snapshot, GraphLabel(LabelKind.PIN, detail)) for detail in pins)


def _named(ref: Ref, goes: bool) -> GraphLabel:
    return GraphLabel(LabelKind.BRANCH if ref.kind is RefKind.BRANCH else LabelKind.TAG, ref.name, goes)
