"""A table's life day by day: commits, files, records and bytes, live and expired alike; as values, and as a picture in
SVG.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from html import escape
from typing import Any

from firnline.errors import UsageError
from firnline.foreign import harmless
from firnline.model.times import DAY_MS, format_instant, tell_instant
from firnline.plans.html.charts import GOES, OTHER, STAYS, colour
from firnline.plans.pages import Block, Grid, Hint, Line, Page, counted, number, size

_NUMBER = re.compile(r"[0-9]{1,18}")
_SUMMARY = {
    "added_files": ("added-data-files", "added-delete-files"),
    "removed_files": ("deleted-data-files", "removed-delete-files"),
    "added_records": ("added-records",),
    "removed_records": ("deleted-records",),
    "added_bytes": ("added-files-size",),
    "removed_bytes": ("removed-files-size",),
}


@dataclass(slots=True)
class Day:
    """One day in UTC: what its commits did, and what firnline expired and purged on it."""

    day: str
    commits: int = 0
    added_files: int = 0
    removed_files: int = 0
    added_records: int = 0
    removed_records: int = 0
    added_bytes: int = 0
    removed_bytes: int = 0
    expired: int = 0
    purged_files: int = 0
    purged_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, slots=True)
class Span:
    """From `since_ms` on and before `until_ms`; None is no limit. Raises UsageError where nothing lies between."""

    since_ms: int | None = None
    until_ms: int | None = None

    def __post_init__(self) -> None:
        if self.since_ms is not None and self.until_ms is not None and self.since_ms >= self.until_ms:
            begin, end = tell_instant(self.since_ms), tell_instant(self.until_ms)
            raise UsageError(f"nothing lies from {begin} on and before {end}", hint="--since is the earlier of the two")

    def holds(self, at_ms: int) -> bool:
        after = self.since_ms is None or at_ms >= self.since_ms
        return after and (self.until_ms is None or at_ms < self.until_ms)


@dataclass(slots=True)
class Timeline:
    """Days that are filled one event at a time, so that a history of any length fits in memory. `remembers`: whether
    what expires is remembered, by the policy in force.
    """

    table: str
    span: Span = field(default_factory=Span)
    live: int = 0
    expired: int = 0
    by_day: dict[int, Day] = field(default_factory=dict)
    remembers: bool = True

    def commit(self, at_ms: int, summary: Mapping[str, str], *, expired: bool) -> None:
        if not self.span.holds(at_ms):
            return
        day = self._day(at_ms)
        day.commits += 1
        self.expired, self.live = self.expired + expired, self.live + (not expired)
        for name, keys in _SUMMARY.items():
            setattr(day, name, getattr(day, name) + sum(_count(summary.get(key)) for key in keys))

    def expiry(self, at_ms: int, snapshots: int = 1) -> None:
        if self.span.holds(at_ms):
            self._day(at_ms).expired += snapshots

    def purge(self, at_ms: int, files: int, size_bytes: int) -> None:
        if self.span.holds(at_ms):
            day = self._day(at_ms)
            day.purged_files += files
            day.purged_bytes += size_bytes

    def days(self) -> list[Day]:
        """Returns the days on which anything happened, oldest first."""
        return [self.by_day[each] for each in sorted(self.by_day)]

    def _day(self, at_ms: int) -> Day:
        return self.by_day.setdefault(at_ms // DAY_MS, Day(format_instant(at_ms)[:10]))

    @property
    def is_blind(self) -> bool:
        """Whether nothing tells how many snapshots expired: none is remembered, and none would be."""
        return not self.remembers and not self.expired

    @property
    def counted_snapshots(self) -> str:
        """How many snapshots are live, and how many expired as far as that is remembered."""
        live = counted(self.live, "live snapshot")
        return live if self.is_blind else f"{live}, {counted(self.expired, 'expired snapshot')}"

    def to_json(self) -> dict[str, Any]:
        limits = {"since": self.span.since_ms, "until": self.span.until_ms}
        return {
            "table": self.table,
            **{name: None if at is None else format_instant(at) for name, at in limits.items()},
            "remembers": self.remembers,
            "snapshots": {"live": self.live, "expired": self.expired},
            "days": [day.to_json() for day in self.days()],
        }

    def __str__(self) -> str:
        return timeline_page(self).to_text()

    def _repr_html_(self) -> str:
        from firnline.ops.html.history import history_html

        return history_html(self)


def _count(text: str | None) -> int:
    """Returns a figure of a summary; what is no number, as some writers leave it, counts as nothing."""
    return int(text) if text is not None and _NUMBER.fullmatch(text) else 0


_OFF = (
    "history is off for this table: commits of expired snapshots are not remembered; what was expired and purged all "
    "the same is told by the records of runs"
)
TURN_ON = "`history: 180d` in firnline.yaml, or `firnline expire TABLE --history 180d`, has the table remember"


def timeline_page(timeline: Timeline) -> Page:
    """Returns the days as a person reads them."""
    blocks: list[Block] = [Line(f"{timeline.table}: {timeline.counted_snapshots}")]
    headings = ("day", "commits", "files", "records", "bytes", "expired", "purged")
    rows = tuple(_rows(timeline.days()))
    if rows:
        blocks.append(Grid(rows, headings, right=frozenset(range(1, len(headings)))))
    if not timeline.remembers:
        blocks += [Line(_OFF), Hint(TURN_ON)]
    return Page(tuple(blocks))


def _rows(days: Iterable[Day]) -> Iterator[tuple[str, ...]]:
    for day in days:
        yield (
            day.day,
            number(day.commits),
            f"+{number(day.added_files)} -{number(day.removed_files)}",
            f"+{number(day.added_records)} -{number(day.removed_records)}",
            f"+{size(day.added_bytes)} -{size(day.removed_bytes)}",
            number(day.expired),
            size(day.purged_bytes),
        )


WIDTH, BAND, LEFT, RIGHT, TOP, GAP = 960, 90, 110, 20, 40, 34
_WIDEST = 24
"""A day's bar is never wider: those of a lone day would be blocks."""


@dataclass(frozen=True, slots=True)
class Colours:
    """What a picture is drawn with: on paper, or as the page around it says."""

    ground: str = "white"
    ink: str = "black"
    up: str = "#2a6f97"
    down: str = "#c1666b"
    line: str = "#999"


ON_PAPER = Colours()
ON_A_PAGE = Colours(colour("ground", "white"), colour("ink", "black"), STAYS, GOES, OTHER)
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


def svg_of(timeline: Timeline, colours: Colours = ON_PAPER, fits: bool = False) -> str:
    """Returns the picture as an SVG document; every bar says its day and figure when it is pointed at. `fits`: it is no
    wider than what it stands in.
    """
    days = timeline.days()
    height = TOP + len(BANDS) * (BAND + GAP) + 10
    body = "\n".join(_body(timeline.table, days, colours))
    style = ' style="max-width:100%;height:auto"' if fits else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"{style} '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11" fill="{colours.ink}">\n'
        f'<rect width="100%" height="100%" fill="{colours.ground}"/>\n{body}\n</svg>\n'
    )


def _body(table: str, days: Sequence[Day], colours: Colours) -> Iterator[str]:
    yield f'<text x="{LEFT}" y="22" font-size="14">{escape(harmless(table))}</text>'
    if not days:
        yield f'<text x="{LEFT}" y="{TOP + 20}">nothing happened in this time</text>'
        return
    first, last = _ordinal(days[0]), _ordinal(days[-1])
    step = min(_WIDEST, (WIDTH - LEFT - RIGHT) / (last - first + 1))
    for place, band in enumerate(BANDS):
        top = TOP + place * (BAND + GAP)
        yield from _band(band, days, first, step, top, colours)
    low = TOP + len(BANDS) * (BAND + GAP) - 4
    if step == _WIDEST:  # the last day is near the first: there is no room for two words
        said = days[0].day if first == last else f"{days[0].day} to {days[-1].day}"
        yield f'<text x="{LEFT}" y="{low}">{said}</text>'
        return
    for day, x, anchor in ((days[0], LEFT, "start"), (days[-1], WIDTH - RIGHT, "end")):
        yield f'<text x="{x}" y="{low}" text-anchor="{anchor}">{day.day}</text>'


def _band(band: Band, days: Sequence[Day], first: int, step: float, top: int, colours: Colours) -> Iterator[str]:
    highest, deepest = max(map(band.up, days)), max(map(band.down, days))
    scale = BAND / max(1, highest + deepest)
    zero = top + highest * scale
    yield f'<text x="{LEFT - 8}" y="{top + 10}" text-anchor="end">{escape(band.title)}</text>'
    yield f'<text x="{LEFT - 8}" y="{top + 24}" text-anchor="end" fill="{colours.up}">{band.said(highest)}</text>'
    yield f'<text x="{LEFT - 8}" y="{top + 38}" text-anchor="end" fill="{colours.down}">{band.said(deepest)}</text>'
    yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="{colours.line}"/>'
    for day in days:
        x = LEFT + (_ordinal(day) - first) * step
        for figure, above, fill in ((band.up(day), True, colours.up), (band.down(day), False, colours.down)):
            if figure:
                tall = figure * scale
                y = zero - tall if above else zero
                yield (
                    f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(1.0, step - 1):.1f}" height="{tall:.1f}" '
                    f'fill="{fill}"><title>{day.day}: {band.said(figure)}</title></rect>'
                )


def _ordinal(day: Day) -> int:
    return date.fromisoformat(day.day).toordinal()
