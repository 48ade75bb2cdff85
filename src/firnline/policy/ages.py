"""Ages without end, and the instants that ages reach back to."""

from __future__ import annotations

from firnline.model.times import format_duration

LONGEST_AGE_MS = 2**63 - 1
"""An age without end, as Iceberg writes it: its instants are 64-bit numbers of milliseconds."""

_FIRST_INSTANT_MS = -(2**63)


def cutoff_of(age_ms: int, now_ms: int) -> int:
    """Returns the instant of that age; an age without end reaches before every instant."""
    return _FIRST_INSTANT_MS if age_ms >= LONGEST_AGE_MS else now_ms - age_ms


def newer_than(age_ms: int) -> str:
    return "of any age" if age_ms >= LONGEST_AGE_MS else f"newer than {format_duration(age_ms)}"
