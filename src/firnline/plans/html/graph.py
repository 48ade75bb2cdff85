"""The graph of a table's snapshots as inline SVG: a row for each snapshot or many that are folded, names in colour.

Colours are variables of the page around it, each with a default that can be read on light and on dark ground. What a
colour says stands there in words too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from firnline.model.drawing import SnapshotFate
from firnline.model.times import minute, tell_instant
from firnline.plans.graph.facts import GraphLabel, GraphSnapshot, LabelKind, SnapshotGraph
from firnline.plans.graph.folding import GraphRow, legible_rows
from firnline.plans.graph.text import graph_page, label_in_words, many_in_words
from firnline.plans.html.charts import DOUBT, GOES, OTHER, STAYS, colour
from firnline.plans.html.markup import Markup, card, element, figures, joined, paragraph
from firnline.plans.pages import counted, number

LinkOf = Callable[[str], str]
"""Returns the address of a page about a snapshot."""

_STEP, _TALL, _LEFT, _DOT = 18, 22, 12, 5
_LETTER, _LEAST, _WIDEST = 7.3, 320, 1600
_INK = "currentColor"
_FATES = {
    SnapshotFate.STAYS: STAYS,
    SnapshotFate.FOLLOWS_ROOT: STAYS,
    SnapshotFate.HELD: DOUBT,
    SnapshotFate.GOES: GOES,
    SnapshotFate.UNREFERENCED: OTHER,
}
_SAID = {
    SnapshotFate.STAYS: "stays",
    SnapshotFate.FOLLOWS_ROOT: "stays, and follows the root then",
    SnapshotFate.HELD: "expired, held by a ref",
    SnapshotFate.GOES: "goes",
    SnapshotFate.UNREFERENCED: "had no ref",
}
_LABELS = {
    LabelKind.BRANCH: colour("branch", "#3f7fbf"),
    LabelKind.TAG: colour("tag", "#a0762a"),
    LabelKind.HOLD: colour("hold", "#b0549b"),
    LabelKind.PIN: colour("pin", "#4c8f5d"),
    LabelKind.TIER: colour("tier", "#7b68c8"),
}


def graph_html(graph: SnapshotGraph) -> Markup:
    """Returns the graph for a notebook; the figures are those of its JSON."""
    return card(
        f"{graph.table} ({graph.format})",
        figures(snapshots=number(len(graph.before)), gone=number(graph.going)),
        paragraph(f"policy: {graph.policy}"),
        before_and_after(graph),
    )


def before_and_after(graph: SnapshotGraph, link: LinkOf | None = None) -> Markup:
    """Returns both graphs, what the colours mean, and the same as text for those who do not see a picture."""
    if graph.going or graph.before != graph.after:
        shown = [_part("before", graph.before, graph, link), _part("after", graph.after, graph, link)]
    else:
        shown = [_part("now: nothing would go", graph.before, graph, link)]
    text = element("pre", graph_page(graph).without_hints().to_text())
    details = element("details", element("summary", "the graph as text"), text)
    return element("div", _legend(graph), element("div", *shown, class_="graphs"), details, class_="graph")


def _part(when: str, snapshots: Sequence[GraphSnapshot], graph: SnapshotGraph, link: LinkOf | None) -> Markup:
    said = f"{when}: {counted(len(snapshots), 'snapshot')}" if graph.going else when
    svg = graph_svg(f"history {when}", snapshots, link)
    return element("figure", element("figcaption", said), svg, tabindex="0")


def _legend(graph: SnapshotGraph) -> Markup:
    fates = {each.fate for each in graph.before}
    kinds = {label.kind for each in (*graph.before, *graph.after) for label in each.labels}
    dots = (_keyed(_FATES[fate], _SAID[fate]) for fate in SnapshotFate if fate in fates)
    names = (_keyed(_LABELS[kind], kind.value) for kind in LabelKind if kind in kinds)
    return element("p", *dots, *names, class_="legend")


def _keyed(shade: str, said: str) -> Markup:
    dot = element("circle", cx=5, cy=5, r=5, fill=shade)
    picture = element("svg", dot, width=10, height=10, viewBox="0 0 10 10", aria_hidden="true")
    return joined([element("span", picture, f" {said}", class_="key"), " \N{NO-BREAK SPACE} "])


def graph_svg(said: str, snapshots: Sequence[GraphSnapshot], link: LinkOf | None = None) -> Markup:
    """Returns one graph, folded until a person can look through it."""
    rows = legible_rows(snapshots)
    width = min(_WIDEST, max([_LEAST, *(_right(row) for row in rows)]))
    height = _TALL * max(1, len(rows))
    parts = [*_edges(rows), *(part for number, row in enumerate(rows) for part in _row(row, number, link))]
    return element(
        "svg", *parts, width=width, height=height, viewBox=f"0 0 {width:.5g} {height}",
        role="img" if link is None else "group", aria_label=said,
        font_family="ui-monospace, monospace", font_size=12,
    )  # fmt: skip


def _x(row: GraphRow) -> float:
    return _LEFT + _STEP * row.depth


def _y(number: int) -> float:
    return _TALL * (number + 0.5)


def _right(row: GraphRow) -> float:
    return _x(row) + _STEP + _LETTER * len(_text(row))


def _text(row: GraphRow) -> str:
    if row.is_folded:
        return many_in_words(row.snapshots)
    (one,) = row.snapshots
    return " ".join([one.id, minute(one.timestamp_ms), *map(label_in_words, one.labels)])


def _edges(rows: Sequence[GraphRow]) -> Iterator[Markup]:
    """Yields a line from each row to the one that it comes after: down, and to the right where it forks."""
    for place, row in enumerate(rows):
        if row.under is not None:
            down = f"M{_x(rows[row.under])} {_y(row.under)}V{_y(place)}H{_x(row)}"
            dashes = {"stroke_dasharray": "2 3"} if row.is_folded else {}
            yield element("path", d=down, fill="none", stroke=OTHER, stroke_width=1.5, **dashes)


def _row(row: GraphRow, number: int, link: LinkOf | None) -> Iterator[Markup]:
    y, right = _y(number), _x(row) + _STEP * 0.75
    if row.is_folded:
        yield from _bar(row, y)
        yield element("text", many_in_words(row.snapshots), x=right, y=y + 4, fill=_INK, font_style="italic")
        return
    (one,) = row.snapshots
    told = f"{one.id}, {tell_instant(one.timestamp_ms)}: {_SAID[one.fate]}"
    why = f"; {', '.join(one.reasons)}" if one.reasons else ""
    yield element("circle", element("title", told + why), cx=_x(row), cy=y, r=_DOT, fill=_FATES[one.fate])
    name = element("tspan", one.id)
    linked = name if link is None else element("a", name, href=link(one.id))
    yield element("text", linked, f" {minute(one.timestamp_ms)}", *_named(one.labels), x=right, y=y + 4, fill=_INK)


def _bar(row: GraphRow, y: float) -> Iterator[Markup]:
    """Yields a narrow bar in the place of many: each colour as tall as its share of them."""
    top, tall = y - _TALL / 2 + 3, _TALL - 6.0
    for fate in SnapshotFate:
        count = sum(each.fate is fate for each in row.snapshots)
        if count:
            part = tall * count / len(row.snapshots)
            yield element("rect", x=_x(row) - 2.5, y=top, width=5, height=part, fill=_FATES[fate])
            top += part


def _named(labels: Iterable[GraphLabel]) -> Iterator[Markup]:
    for label in labels:
        crossed = {"text_decoration": "line-through"} if label.goes else {}
        name = element("tspan", label_in_words(label), fill=_LABELS[label.kind], font_weight="bold", **crossed)
        yield joined([" ", name])
