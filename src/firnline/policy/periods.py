"""Ages and calendar periods in UTC, as whole numbers: two instants lie in one period if their numbers are equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from enum import StrEnum
from functools import lru_cache

from firnline.model.snapshots import Snapshot
from firnline.model.times import DAY_MS, HOUR_MS, WEEK_MS, format_duration

LONGEST_AGE_MS = 2**63 - 1
"""An age without end, as Iceberg writes it: its instants are 64-bit numbers of milliseconds."""

_FIRST_INSTANT_MS = -(2**63)


def cutoff_of(age_ms: int, now_ms: int) -> int:
    """Returns the instant of that age; an age without end reaches before every instant."""
    return _FIRST_INSTANT_MS if age_ms >= LONGEST_AGE_MS else now_ms - age_ms


def newer_than(age_ms: int) -> str:
    return "of any age" if age_ms >= LONGEST_AGE_MS else f"newer than {format_duration(age_ms)}"


class Period(StrEnum):
    """The value is the key of the rule in a policy."""

    HOURLY = "hourly"
    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    QUARTERLY = "quarterly"
    YEARLY = "yearly"

    @property
    def noun(self) -> str:
        return "day" if self is Period.DAILY else self.value.removesuffix("ly")

    @property
    def shortest_ms(self) -> int:
        """Returns the length of the shortest such period."""
        return _SHORTEST_MS[self]

    @property
    def number_of(self) -> Callable[[int], int]:
        """Returns the function from epoch milliseconds to the number of the period."""
        return _NUMBER_OF[self]


_SHORTEST_MS = {
    Period.HOURLY: HOUR_MS,
    Period.DAILY: DAY_MS,
    Period.WEEKLY: WEEK_MS,
    Period.MONTHLY: 28 * DAY_MS,
    Period.QUARTERLY: 90 * DAY_MS,
    Period.YEARLY: 365 * DAY_MS,
}

_EPOCH = date(1970, 1, 1).toordinal()
_DAYS_OF_400_YEARS = 146_097
_THURSDAY = 3
"""1970-01-01 was a Thursday, three days into its ISO week."""


@lru_cache(maxsize=4096)
def _month_of_day(day: int) -> int:
    # The calendar repeats every 400 years, so days that `date` cannot hold are moved into its range.
    cycles, rest = divmod(day, _DAYS_OF_400_YEARS)
    moved = date.fromordinal(_EPOCH + rest)
    return (moved.year + 400 * cycles) * 12 + moved.month - 1


_NUMBER_OF: dict[Period, Callable[[int], int]] = {
    Period.HOURLY: lambda ms: ms // HOUR_MS,
    Period.DAILY: lambda ms: ms // DAY_MS,
    Period.WEEKLY: lambda ms: (ms // DAY_MS + _THURSDAY) // 7,
    Period.MONTHLY: lambda ms: _month_of_day(ms // DAY_MS),
    Period.QUARTERLY: lambda ms: _month_of_day(ms // DAY_MS) // 3,
    Period.YEARLY: lambda ms: _month_of_day(ms // DAY_MS) // 12,
}


def newest_of_each(period: Period, newest_first: Iterable[Snapshot]) -> Iterator[Snapshot]:
    """Yields the newest snapshot of each period that has one, of snapshots sorted by time, newest first."""
    number_of = period.number_of
    last: int | None = None
    for snapshot in newest_first:
        number = number_of(snapshot.timestamp_ms)
        if number != last:
            last = number
            yield snapshot
