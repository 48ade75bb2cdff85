"""The quiet window: the hours of a day, in some time zone, in which a worker may work."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from firnline.errors import PolicyError

ALWAYS = "always"
_WINDOW = re.compile(r"([0-2]\d):([0-5]\d)-([0-2]\d):([0-5]\d)(?: ([A-Za-z0-9_+/-]{1,64}))?")
_HINT = "such as 22:00-06:00 Europe/Berlin, or always"
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Window:
    """From one time of day to another; over midnight where the end is the earlier one."""

    start: time
    end: time
    zone: str = "UTC"

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M} {self.zone}"

    def closes_ms(self, now_ms: int) -> int | None:
        """Returns when the window closes that is open now; None where it is shut."""
        return next((end for start, end in self._spans(now_ms) if start <= now_ms < end), None)

    def opens_ms(self, now_ms: int) -> int:
        """Returns when the window opens next; the present moment where it is open."""
        if self.closes_ms(now_ms) is not None:
            return now_ms
        return min(start for start, _ in self._spans(now_ms) if start > now_ms)

    def _spans(self, now_ms: int) -> list[tuple[int, int]]:
        """Returns the windows around an instant. Each is made of local times of its own day: where clocks are put
        forward or back inside, it is an hour shorter or longer, and still begins and ends at the times of the file.
        """
        zone = ZoneInfo(self.zone)
        today = datetime.fromtimestamp(now_ms / 1000, zone).date()
        days = (today + timedelta(days=each) for each in range(-2, 3))
        over = _DAY if self.end <= self.start else timedelta(0)
        return [
            (_at(datetime.combine(day, self.start, zone)), _at(datetime.combine(day + over, self.end, zone)))
            for day in days
        ]


def _at(moment: datetime) -> int:
    return round(moment.astimezone(UTC).timestamp() * 1000)


def parse_window(text: str) -> Window | None:
    """Returns the window that a text means; None for one that never closes. Raises PolicyError for any other text."""
    if text == ALWAYS:
        return None
    found = _WINDOW.fullmatch(text)
    if found is None:
        raise PolicyError(f"{text[:64]!r} is not a window", hint=_HINT)
    try:
        start, end = (time(int(found[each]), int(found[each + 1])) for each in (1, 3))
    except ValueError:
        raise PolicyError(f"{text[:64]!r} has no such hour", hint=_HINT) from None
    if start == end:
        raise PolicyError(f"{text[:64]!r} is a window of no length", hint=_HINT)
    return Window(start, end, _zone(found[5] or "UTC"))


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise PolicyError(f"no time zone is named {name!r}", hint=_HINT) from None
    return name
