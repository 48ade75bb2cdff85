"""How far back a table remembers what expired: an age, or an instant."""

from __future__ import annotations

from dataclasses import dataclass

from firnline.model.times import format_duration, format_instant
from firnline.policy.periods import LONGEST_AGE_MS, cutoff_of

FOREVER = "forever"


@dataclass(frozen=True, slots=True)
class HistoryBound:
    """Expired snapshots are remembered up to an age; or, if there is an instant, those that were committed after it."""

    age_ms: int = LONGEST_AGE_MS
    after_ms: int | None = None

    def cutoff_ms(self, now_ms: int) -> int:
        """Returns the last instant whose snapshots are forgotten."""
        return cutoff_of(self.age_ms, now_ms) if self.after_ms is None else self.after_ms

    @property
    def is_endless(self) -> bool:
        return self.after_ms is None and self.age_ms >= LONGEST_AGE_MS

    def __str__(self) -> str:
        if self.after_ms is not None:
            return f"after {format_instant(self.after_ms)}"
        return FOREVER if self.is_endless else format_duration(self.age_ms)
