"""A graph as lines of text for a terminal: a sign and a line for each row."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from firnline.foreign import harmless
from firnline.model.drawing import SnapshotFate
from firnline.model.times import minute
from firnline.plans.graph.facts import GraphLabel, GraphSnapshot, LabelKind, SnapshotGraph
from firnline.plans.graph.folding import GraphRow, alike_rows, legible_rows
from firnline.plans.pages import Block, Drawn, Hint, Line, Page, counted, number

WIDTH = 80
SIGNS = {
    SnapshotFate.STAYS: "o",
    SnapshotFate.FOLLOWS_ROOT: "^",
    SnapshotFate.HELD: ".",
    SnapshotFate.GOES: "x",
    SnapshotFate.UNREFERENCED: "?",
}
LEGEND = "o stays  ^ follows the root now  . expired, held by a ref  x goes  ? had no ref"
_OF_MANY = {
    SnapshotFate.STAYS: "stay",
    SnapshotFate.HELD: "are held by a ref",
    SnapshotFate.GOES: "go",
    SnapshotFate.UNREFERENCED: "had no ref",
}
"""Said of many in a row. Of what follows the root now there is always something to tell, and no row."""
_PARTS = ("o stays", "^ follows the root now", ". expired, held by a ref", "x goes", "? had no ref")


def graph_page(graph: SnapshotGraph, everything: bool = False, width: int | None = None) -> Page:
    """Returns what a person reads: the graph before and after; folded until it is legible, unless `everything`."""
    return Page(tuple(_blocks(graph, everything, width or WIDTH)))


def _blocks(graph: SnapshotGraph, everything: bool, width: int) -> Iterator[Block]:
    going = f", of which {number(graph.going)} would go" if graph.going else ""
    yield Line(f"{graph.table} ({graph.format}), {counted(len(graph.before), 'snapshot')}{going}")
    yield Line(f"policy: {graph.policy}")
    rows = alike_rows if everything else legible_rows
    if not graph.going and graph.before == graph.after:
        yield Line("nothing would go")
        yield Drawn(tuple(_cut(each, width - 2) for each in _lines(rows(graph.before))))
        return
    for when, snapshots, end in (("before", graph.before, []), ("after", graph.after, [*_end(graph)])):
        yield Line(f"history {when}")
        yield Drawn(tuple(_cut(each, width - 2) for each in (*_lines(rows(snapshots)), *end)))
    yield Line("  ".join(part for fate, part in zip(SnapshotFate, _PARTS, strict=True) if _has(graph, fate)))
    if not everything:
        yield Hint("`--list` folds less; `firnline why TABLE SNAPSHOT` explains one snapshot")


def _has(graph: SnapshotGraph, fate: SnapshotFate) -> bool:
    return any(each.fate is fate for each in graph.before)


def lines_before(graph: SnapshotGraph, width: int = WIDTH) -> tuple[str, ...]:
    """Returns the history with every snapshot and what becomes of it, no line wider than a terminal."""
    return tuple(_cut(each, width) for each in _lines(alike_rows(graph.before)))


def lines_after(graph: SnapshotGraph, width: int = WIDTH) -> tuple[str, ...]:
    """Returns the history with those that are left."""
    return tuple(_cut(each, width) for each in (*_lines(alike_rows(graph.after)), *_end(graph)))


def drawing_json(graph: SnapshotGraph) -> dict[str, Any]:
    return {"before": list(lines_before(graph)), "after": list(lines_after(graph)), "legend": LEGEND}


def _end(graph: SnapshotGraph) -> Iterator[str]:
    if graph.going:
        yield f"{counted(graph.going, 'snapshot')} {graph.gone}"


def _lines(rows: Iterable[GraphRow]) -> Iterator[str]:
    for row in rows:
        margin = "| " * (row.depth - 1) + "|-" if row.forks else "| " * row.depth
        yield margin + (f": {many_in_words(row.snapshots)}" if row.is_folded else _one(row.snapshots[0]))


def _one(snapshot: GraphSnapshot) -> str:
    label = ", ".join(map(label_in_words, snapshot.labels))
    said = f"{SIGNS[snapshot.fate]} {snapshot.id} {minute(snapshot.timestamp_ms)}"
    return f"{said} {label}" if label else said


def many_in_words(snapshots: Iterable[GraphSnapshot]) -> str:
    """Returns what becomes of many in a row: `12 more go`, `12 more: 8 go, 4 stay, 3 tags`."""
    shown = list(snapshots)
    fates = Counter(each.fate for each in shown)
    labels = [label for each in shown for label in each.labels]
    tags = sum(label.kind is LabelKind.TAG for label in labels)
    tiers = Counter(label.name for label in labels if label.kind is LabelKind.TIER)
    if len(fates) == 1 and not labels:
        return f"{number(len(shown))} more {_OF_MANY[shown[0].fate]}"
    said = [f"{number(fates[fate])} {_OF_MANY[fate]}" for fate in SnapshotFate if fate in fates]
    said += [f"{number(count)} to {harmless(tier)}" for tier, count in tiers.items()]
    said += [counted(tags, "tag")] if tags else []
    return f"{number(len(shown))} more: {', '.join(said)}"


def label_in_words(label: GraphLabel) -> str:
    """Returns a name as it is read: a branch by its name alone, others after what they are."""
    name = harmless(label.name)
    if label.kind is LabelKind.TIER:
        return f"to {name}"
    said = name if label.kind is LabelKind.BRANCH else f"{label.kind} {name}"
    return f"{said} (goes)" if label.goes else f"{said} (new)" if label.made else said


def _cut(line: str, width: int) -> str:
    """Returns as much of a line as fits: some letters take two columns, and some none."""
    ends = list(accumulate(map(_columns, line)))
    return line if not ends or ends[-1] <= width else f"{line[: bisect_right(ends, width - 1)]}…"


def _columns(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
