"""How figures are said: counts with separators, sizes in binary units, instants to the minute."""

from __future__ import annotations

from firnline.model.files import Tally
from firnline.model.times import format_duration, format_instant
from firnline.policy.native import LONGEST_AGE_MS

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def size(count: int) -> str:
    """Returns bytes as people say them: 0 B, 999 B, 1.5 KiB, 3.1 TiB."""
    value = float(count)
    for unit in _UNITS:
        if round(value, 1) < 1024 or unit == _UNITS[-1]:
            break
        value /= 1024
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"


def number(count: int) -> str:
    return f"{count:,}"


def counted(count: int, noun: str) -> str:
    """Returns '1 file', '2 files'."""
    return f"{number(count)} {noun}" + ("" if count == 1 else "s")


def tally(what: Tally) -> str:
    return f"{counted(what.files, 'file')}, {size(what.bytes)}"


def minute(ms: int) -> str:
    """Returns '2026-08-22 09:00', in UTC."""
    return format_instant(ms)[:16].replace("T", " ")


def lasting(ms: int) -> str:
    """Returns how long something is kept: '180d', or 'forever'."""
    return "forever" if ms >= LONGEST_AGE_MS else format_duration(ms)
