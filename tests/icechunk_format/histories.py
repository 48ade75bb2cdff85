"""Histories without a repository: the sample of Icechunk's design, random ones, and a plain reading of the design."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import NamedTuple

from hypothesis import strategies as st

from firnline.formats.icechunk.expiring.ancestry import RefHistory
from firnline.formats.icechunk.expiring.drawing import drawn
from firnline.formats.icechunk.expiring.rewriting import Rewriting
from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.model.snapshots import MAIN, Ref, RefKind
from firnline.plans.graph.facts import GraphLabel, GraphTitle, LabelKind, labelled
from firnline.plans.graph.text import lines_after, lines_before

MINUTE = 60_000_000
SAMPLE_PARENTS = {1: 0, 2: 1, 3: 2, 4: 2, 5: 4, 6: 3, 7: 6, 8: 7, 9: 7, 10: 6, 11: 10, 12: 5, 13: 12, 14: 13}
SAMPLE_REFS = (
    Ref("main", RefKind.BRANCH, "14"),
    Ref("develop", RefKind.BRANCH, "11"),
    Ref("test", RefKind.BRANCH, "9"),
    Ref("qa", RefKind.BRANCH, "8"),
    Ref("tag1", RefKind.TAG, "3"),
    Ref("tag2", RefKind.TAG, "5"),
)
SAMPLE_THRESHOLD = 8 * MINUTE


class DrawnLines(NamedTuple):
    before: tuple[str, ...]
    after: tuple[str, ...]


def drawn_lines(rewriting: Rewriting) -> DrawnLines:
    """Returns the text of a rewritten history, with its refs."""
    labels: defaultdict[str, list[GraphLabel]] = defaultdict(list)
    for ref in rewriting.before.refs:
        labels[ref.snapshot].append(GraphLabel(LabelKind(ref.kind), ref.name, ref in rewriting.deleted))
    graph = labelled(GraphTitle("t", "icechunk", 0, ""), drawn(rewriting), labels, {})
    return DrawnLines(lines_before(graph), lines_after(graph))


def history_of(parents: Mapping[int, int], refs: Iterable[Ref]) -> RefHistory:
    """Returns a history of numbered snapshots, one a minute; 0 is the root."""
    rest = {
        str(each): HistorySnapshot(str(each), str(below), each * MINUTE, f"commit {each}")
        for each, below in parents.items()
    }
    return RefHistory({"0": HistorySnapshot("0", None, 0, "first"), **rest}, tuple(refs))


def sample() -> RefHistory:
    return history_of(SAMPLE_PARENTS, SAMPLE_REFS)


@st.composite
def random_histories(draw: st.DrawFn, largest: int = 14) -> RefHistory:
    """A tree that grows from one root, younger than its parent each; refs anywhere, so that a reset leaves some of it
    without any.
    """
    size = draw(st.integers(1, largest))
    parents = {each: draw(st.integers(max(0, each - 4), each - 1)) for each in range(1, size + 1)}
    anywhere = st.integers(0, size).map(str)
    refs = [Ref(MAIN, RefKind.BRANCH, draw(anywhere))]
    refs += [Ref(f"branch{n}", RefKind.BRANCH, at) for n, at in enumerate(draw(st.lists(anywhere, max_size=4)))]
    refs += [Ref(f"tag{n}", RefKind.TAG, at) for n, at in enumerate(draw(st.lists(anywhere, max_size=4)))]
    return history_of(parents, refs)


def after_ref(history: RefHistory, ref: Ref, survivors: Set[str]) -> RefHistory:
    """Returns the history after one ref, as the design's own listing says it, but for roots, which it never edits."""
    if ref.snapshot not in survivors:
        return history
    line = list(history.line(ref.snapshot))
    kept = [each for each in line[:-1] if each in survivors]
    if not kept:
        return history
    edited = replace(history.snapshots[kept[-1]], parent=line[-1])
    return RefHistory({**history.snapshots, edited.id: edited}, history.refs)


def lines_of(history: RefHistory) -> dict[tuple[str, str], list[str]]:
    return {(str(ref.kind), ref.name): list(history.line(ref.snapshot)) for ref in history.refs}
