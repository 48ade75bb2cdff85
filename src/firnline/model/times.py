"""Instants and durations: integers of milliseconds inside, ISO 8601 and short units outside. UTC only."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from firnline.errors import BadTimestamp, UsageError

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS

_UNITS = {"s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": WEEK_MS, "y": 365 * DAY_MS}
_DURATION = re.compile(r"(?:\d{1,12}[smhdwy])+")
_PART = re.compile(r"(\d+)([smhdwy])")
_DAY = re.compile(r"(19|20)\d{6}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MILLISECONDS = re.compile(r"-?[0-9]{5,18}")
_FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
_SECONDS_FROM, _SECONDS_BEFORE = 946_684_800, 4_102_444_800
"""The years 2000 to 2099 in seconds. The same numbers of milliseconds all lie in January and February of 1970."""


def parse_duration(text: str) -> int:
    """Returns milliseconds for texts such as 30d, 12h or 1d12h. A bare number has no unit and is refused; so is a large
    M, which means months to some: minutes would let nearly all go.
    """
    cleaned = text.strip().lower()
    if "M" in text:
        raise UsageError(f"minutes or months? {text!r}", hint="15m are minutes; of months write the days: 180d")
    if not _DURATION.fullmatch(cleaned):
        raise UsageError(f"not a duration: {text!r}", hint="write a number and a unit: 90s, 15m, 24h, 30d, 4w, 1y")
    return sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(cleaned))


def is_duration(text: str) -> bool:
    """Tells whether a text means a time span, and not an instant: those have no unit behind their numbers."""
    return _DURATION.fullmatch(text.strip().lower()) is not None


def format_duration(ms: int) -> str:
    """Returns the shortest text that parse_duration reads back to the same value (whole seconds)."""
    if ms < SECOND_MS:
        return "0s" if ms == 0 else f"{ms} ms"
    parts = []
    for unit in ("d", "h", "m", "s"):
        count, ms = divmod(ms, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def parse_instant(text: str) -> int:
    """Returns epoch milliseconds for ISO 8601 with a zone, or for a whole number of milliseconds.

    A time without a zone means different instants on different machines, so it is refused; and so is a number that
    counts seconds.
    """
    cleaned = text.strip()
    if _DAY.fullmatch(cleaned):
        raise BadTimestamp(f"a date or milliseconds? {text!r}", hint=_INSTANT_HINT)
    if _MILLISECONDS.fullmatch(cleaned):
        refuse_seconds(int(cleaned))
        return _before_the_end(int(cleaned), text)
    try:
        moment = datetime.fromisoformat(cleaned)
    except ValueError:
        raise BadTimestamp(f"not a timestamp: {text!r}", hint=_INSTANT_HINT) from None
    if moment.tzinfo is None:
        raise BadTimestamp(f"timestamp without a zone: {text!r}", hint=_INSTANT_HINT)
    return round(moment.timestamp() * 1000)


def refuse_seconds(number: float) -> None:
    """Raises BadTimestamp for a number that is an instant of our times in seconds, as `time.time()` and `date +%s` have
    it: January 1970 can be written as ISO 8601.
    """
    if _SECONDS_FROM <= number < _SECONDS_BEFORE:
        raise BadTimestamp(f"seconds, and not milliseconds? {number}", hint=_SECONDS_HINT)


_UTC = " UTC"


def parse_moment(text: str) -> int:
    """Returns the same, also for a date alone: the instant at which that day begins in UTC; and for what `tell_instant`
    told.

    Only for what a person types: the answer shows which instant that was.
    """
    cleaned = text.strip()
    if _DATE.fullmatch(cleaned):
        return parse_instant(f"{cleaned}T00:00:00Z")
    return parse_instant(f"{cleaned.removesuffix(_UTC)}Z" if cleaned.endswith(_UTC) else cleaned)


def parse_last_moment(text: str) -> int:
    """Returns the same, of a date alone the instant at which that day is over in UTC: what stays until a day stays on
    it.
    """
    return min(LAST_MS, parse_moment(text) + (DAY_MS if _DATE.fullmatch(text.strip()) else 0))


def _before_the_end(ms: int, text: str) -> int:
    """Returns the instant. One that no calendar shows was meant in another unit, such as microseconds."""
    if not _FIRST_MS <= ms <= LAST_MS:
        raise BadTimestamp(f"outside the years 1 to 9999: {text!r}", hint=_INSTANT_HINT)
    return ms


_SECONDS_HINT = (
    "milliseconds since 1970 are asked for: multiply by 1000, or write ISO 8601 with a zone (2026-08-22T09:00:00Z)"
)
_INSTANT_HINT = "write ISO 8601 with a zone (2026-08-22T09:00:00Z) or epoch milliseconds (1787389200000)"


def format_instant(ms: int) -> str:
    """Returns ISO 8601 in UTC with milliseconds, which parse_instant reads back to the same value."""
    try:
        moment = datetime.fromtimestamp(ms // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(ms)
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


_EXACT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z")


def minute(ms: int) -> str:
    """Returns '2026-08-22 09:00', in UTC."""
    return format_instant(ms)[:16].replace("T", " ")


def second(ms: int) -> str:
    """Returns '2026-08-22 09:00:30', in UTC, where several things happen within a minute."""
    return format_instant(ms)[:19].replace("T", " ")


def tell_instant(ms: int) -> str:
    """Returns '2026-08-22 09:00 UTC': an instant in a sentence for a person, as precise as tables tell it. What a
    program reads has `format_instant`.
    """
    return f"{minute(ms)}{_UTC}"


def tell_second(ms: int) -> str:
    """Returns '2026-08-22 09:00:30 UTC'."""
    return f"{second(ms)}{_UTC}"


def due_minute(ms: int) -> str:
    """Returns the first whole minute at which an instant that is waited for is over."""
    return minute(min(LAST_MS, -(-ms // MINUTE_MS) * MINUTE_MS))


def tell_due(ms: int) -> str:
    """Returns the same in a sentence."""
    return f"{due_minute(ms)}{_UTC}"


def tell_dues(text: str) -> str:
    """Returns a sentence that a program reads too, as a person is told it: its instants are waited for."""
    return _EXACT.sub(lambda found: tell_due(parse_instant(found[0])), text)
