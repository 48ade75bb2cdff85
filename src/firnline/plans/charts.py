"""A timeline as a picture: one band of bars per figure, written as SVG by hand so that no library is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from html import escape

from firnline.plans.timeline import Day, Timeline
from firnline.plans.wording import number, size

WIDTH, BAND, LEFT, RIGHT, TOP, GAP = 960, 90, 110, 20, 40, 34
UP, DOWN = "#2a6f97", "#c1666b"
Figure = Callable[[Day], int]


@dataclass(frozen=True, slots=True)
class Band:
    """One figure over time: what comes grows upwards, what goes downwards."""

    title: str
    up: Figure
    down: Figure
    said: Callable[[int], str] = number


BANDS = (
    Band("commits / expired", lambda day: day.commits, lambda day: day.expired),
    Band("files", lambda day: day.added_files, lambda day: day.removed_files),
    Band("records", lambda day: day.added_records, lambda day: day.removed_records),
    Band("bytes", lambda day: day.added_bytes, lambda day: day.removed_bytes, size),
    Band("purged bytes", lambda day: 0, lambda day: day.purged_bytes, size),
)


def svg_of(timeline: Timeline) -> str:
    """Returns the picture as an SVG document; every bar says its day and figure when it is pointed at."""
    days = timeline.days()
    height = TOP + len(BANDS) * (BAND + GAP) + 10
    body = "\n".join(_body(timeline.table, days))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def _body(table: str, days: Sequence[Day]) -> Iterator[str]:
    yield f'<text x="{LEFT}" y="22" font-size="14">{escape(table)}</text>'
    if not days:
        yield f'<text x="{LEFT}" y="{TOP + 20}">nothing happened in this time</text>'
        return
    first, last = _ordinal(days[0]), _ordinal(days[-1])
    step = (WIDTH - LEFT - RIGHT) / (last - first + 1)
    for place, band in enumerate(BANDS):
        top = TOP + place * (BAND + GAP)
        yield from _band(band, days, first, step, top)
    for day, x, anchor in ((days[0], LEFT, "start"), (days[-1], WIDTH - RIGHT, "end")):
        yield f'<text x="{x}" y="{TOP + len(BANDS) * (BAND + GAP) - 4}" text-anchor="{anchor}">{day.day}</text>'


def _band(band: Band, days: Sequence[Day], first: int, step: float, top: int) -> Iterator[str]:
    highest, deepest = max(map(band.up, days)), max(map(band.down, days))
    scale = BAND / max(1, highest + deepest)
    zero = top + highest * scale
    yield f'<text x="{LEFT - 8}" y="{top + 10}" text-anchor="end">{escape(band.title)}</text>'
    yield f'<text x="{LEFT - 8}" y="{top + 24}" text-anchor="end" fill="{UP}">{band.said(highest)}</text>'
    yield f'<text x="{LEFT - 8}" y="{top + 38}" text-anchor="end" fill="{DOWN}">{band.said(deepest)}</text>'
    yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="#999"/>'
    for day in days:
        x = LEFT + (_ordinal(day) - first) * step
        for figure, above, colour in ((band.up(day), True, UP), (band.down(day), False, DOWN)):
            if figure:
                tall = figure * scale
                y = zero - tall if above else zero
                yield (
                    f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(1.0, step - 1):.1f}" height="{tall:.1f}" '
                    f'fill="{colour}"><title>{day.day}: {band.said(figure)}</title></rect>'
                )


def _ordinal(day: Day) -> int:
    return date.fromisoformat(day.day).toordinal()
