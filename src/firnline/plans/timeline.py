"""A table's life day by day: commits, files, records and bytes, live and expired alike, and what expired when."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from firnline.model.times import DAY_MS, format_instant
from firnline.plans.pages import Block, Grid, Line, Page
from firnline.plans.wording import counted, number, size

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
    """From `since_ms` on and before `until_ms`; None is no limit."""

    since_ms: int | None = None
    until_ms: int | None = None

    def holds(self, at_ms: int) -> bool:
        after = self.since_ms is None or at_ms >= self.since_ms
        return after and (self.until_ms is None or at_ms < self.until_ms)


@dataclass(slots=True)
class Timeline:
    """Days that are filled one event at a time, so that a history of any length fits in memory."""

    table: str
    span: Span = field(default_factory=Span)
    live: int = 0
    expired: int = 0
    by_day: dict[int, Day] = field(default_factory=dict)

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

    def to_json(self) -> dict[str, Any]:
        limits = {"since": self.span.since_ms, "until": self.span.until_ms}
        return {
            "table": self.table,
            **{name: None if at is None else format_instant(at) for name, at in limits.items()},
            "snapshots": {"live": self.live, "expired": self.expired},
            "days": [day.to_json() for day in self.days()],
        }


def _count(text: str | None) -> int:
    """Returns a figure of a summary; what is no number, as some writers leave it, counts as nothing."""
    return int(text) if text is not None and _NUMBER.fullmatch(text) else 0


def timeline_page(timeline: Timeline) -> Page:
    """Returns the days as a person reads them."""
    live, gone = counted(timeline.live, "live snapshot"), counted(timeline.expired, "expired snapshot")
    blocks: list[Block] = [Line(f"{timeline.table}: {live}, {gone}")]
    headings = ("day", "commits", "files", "records", "bytes", "expired", "purged")
    rows = tuple(_rows(timeline.days()))
    if rows:
        blocks.append(Grid(rows, headings, right=frozenset(range(1, len(headings)))))
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
