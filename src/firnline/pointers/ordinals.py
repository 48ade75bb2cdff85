"""Ordinals: which of two pointers is the newer one. An instant of UTC, written so that texts sort as times do."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from firnline.errors import UnreadableMetadata

_ORDINAL = re.compile(r"([0-9]{8}T[0-9]{6})(?:\.([0-9]{3}))?")
_SECONDS = "%Y%m%dT%H%M%S"
_SHAPE = "an ordinal is a time such as 20240128T153045"


def ordinal_at(ms: int) -> str:
    """Returns the ordinal of an instant: `20240128T153045.123`. Raises UnreadableMetadata after the year 9999: a
    writer may count microseconds, and anybody may write a pointer of the last day.
    """
    try:
        moment = datetime.fromtimestamp(ms // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        raise UnreadableMetadata(f"{ms} milliseconds are no time of a commit", hint=_SHAPE) from None
    return f"{moment.year:04d}{moment:%m%dT%H%M%S}.{ms % 1000:03d}"


def ordinal_ms(text: str) -> int:
    """Returns the instant of an ordinal, with or without milliseconds. Raises UnreadableMetadata for any other text."""
    match = _ORDINAL.fullmatch(text)
    try:
        moment = datetime.strptime(match[1], _SECONDS).replace(tzinfo=UTC) if match else None
    except ValueError:
        moment = None
    if match is None or moment is None:
        raise UnreadableMetadata(f"{text[:40]!r} is no ordinal", hint=_SHAPE)
    return round(moment.timestamp()) * 1000 + int(match[2] or 0)


def later(ms: int, before: str | None) -> str:
    """Returns the ordinal of an instant, or the next one after `before` where that is not earlier: two commits of one
    millisecond, and a clock that was set back, still count up.
    """
    return ordinal_at(ms if before is None else max(ms, ordinal_ms(before) + 1))
