"""Small charts as inline SVG: shares of a whole, and what happened when. Every part says its figure when it is pointed
at, and the words beside it say the same: a chart is never the only place of a figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from firnline.model.times import minute
from firnline.plans.html.markup import Markup, element
from firnline.plans.pages import number

_VARIABLE = "-" + "-firnline-"


def colour(name: str, usual: str) -> str:
    """Returns a colour that a page around it may say itself, light or dark, as a variable; else the usual one."""
    return f"var({_VARIABLE}{name}, {usual})"


STAYS, GOES = colour("stays", "#2a6f97"), colour("goes", "#c1666b")
DOUBT, OTHER = colour("doubt", "#b8a14a"), colour("other", "#9aa0a6")
"""What stays, what goes, what a person should look at, and the rest."""

_WIDTH, _BAR, _TALL, _MOST = 640, 16, 64, 80
_LEGEND = "display:inline-block;margin-right:1.5em"
_SMALL, _WIDEST = 120, 16.0


@dataclass(frozen=True, slots=True)
class Share:
    """One part of a whole: how large it is, and how that is said."""

    name: str
    amount: int
    said: str
    colour: str


@dataclass(frozen=True, slots=True)
class TimedMark:
    """Something that happened, and which of a chart's series it belongs to."""

    at_ms: int
    series: int


def share_bar(of: str, shares: Sequence[Share]) -> Markup:
    """Returns a bar of the parts of a whole, with a word for each part that is not empty; nothing of an empty whole."""
    shown = [each for each in shares if each.amount > 0]
    if not shown:
        return Markup("")
    return element("div", _bar(of, shown, _WIDTH), Markup("<br>"), *_legend(shown))


def _legend(shares: Iterable[Share]) -> Iterator[Markup]:
    for each in shares:
        yield element("span", _square(each.colour), f" {each.name}: {each.said}", style=_LEGEND)


def small_bar(of: str, shares: Sequence[Share]) -> Markup:
    """Returns the same for a cell of a table: without words, which the cells beside it have."""
    shown = [each for each in shares if each.amount > 0]
    return _bar(of, shown, _SMALL) if shown else Markup("")


def _bar(of: str, shares: Sequence[Share], width: int) -> Markup:
    whole, left, parts = sum(each.amount for each in shares), 0.0, list[Markup]()
    for each in shares:
        wide = each.amount / whole * width
        parts.append(_rect(left, 0, wide, _BAR, each.colour, f"{each.name}: {each.said}"))
        left += wide
    return _svg(of, width, _BAR, parts)


def time_columns(of: str, series: Sequence[tuple[str, str]], marks: Iterable[TimedMark]) -> Markup:
    """Returns how many happened when: columns of at most so many equal spans, the series on top of each other, each
    with its name and colour. Nothing where nothing happened; a chart never grows with a table's age.
    """
    found = list(marks)
    if not found:
        return Markup("")
    first, last = min(each.at_ms for each in found), max(each.at_ms for each in found)
    step = max(1, -(-(last - first + 1) // _MOST))
    counts = [[0] * len(series) for _ in range((last - first) // step + 1)]
    for each in found:
        counts[(each.at_ms - first) // step][each.series] += 1
    sums = [sum(column) for column in zip(*counts, strict=True)]
    told = [Share(name, count, number(count), colour) for (name, colour), count in zip(series, sums, strict=True)]
    span = element("small", f"{of} from {minute(first)} to {minute(last)}")
    chart = _svg(of, _WIDTH, _TALL, _columns(series, counts, first, step))
    return element("div", chart, Markup("<br>"), *_legend(told), span)


def _columns(series: Sequence[tuple[str, str]], counts: Sequence[Sequence[int]], first: int, step: int) -> list[Markup]:
    highest, wide = max(map(sum, counts)), min(_WIDEST, _WIDTH / len(counts))
    columns = []
    for place, column in enumerate(counts):
        bottom = float(_TALL)
        for (name, colour), count in zip(series, column, strict=True):
            tall = count / highest * _TALL
            bottom -= tall
            said = f"{minute(first + place * step)}: {name} {number(count)}"
            if count:
                columns.append(_rect(place * wide, bottom, max(1.0, wide - 1), tall, colour, said))
    return columns


def count_bars(rows: Sequence[tuple[str, int]], colour: str = STAYS) -> list[tuple[str, str, Markup]]:
    """Returns rows of a table: a name, its count, and a bar as long as that is beside the largest."""
    most = max((count for _, count in rows), default=1) or 1
    return [
        (
            name,
            number(count),
            _svg(name, _SMALL, _BAR, [_rect(0, 0, count / most * _SMALL, _BAR, colour, f"{name}: {number(count)}")]),
        )
        for name, count in rows
    ]


def _square(colour: str) -> Markup:
    return _svg("", 10, 10, [_rect(0, 0, 10, 10, colour, "")])


def _svg(of: str, width: int, height: int, inside: Sequence[str]) -> Markup:
    """Returns a picture; one of nothing stands beside words that say it."""
    told: dict[str, str] = {"role": "img", "aria_label": of} if of else {"aria_hidden": "true"}
    return element("svg", *inside, width=width, height=height, viewBox=f"0 0 {width} {height}", **told)


def _rect(x: float, y: float, width: float, height: float, colour: str, said: str) -> Markup:
    title = (element("title", said),) if said else ()
    return element("rect", *title, x=x, y=y, width=width, height=height, fill=colour)
