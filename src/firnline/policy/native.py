"""A format's own retention settings: what counts where nobody wrote a firnline policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firnline.model.snapshots import MAIN
from firnline.model.times import format_duration, format_instant
from firnline.policy.ages import LONGEST_AGE_MS, cutoff_of, newer_than
from firnline.policy.ranges import Range

__all__ = ["LONGEST_AGE_MS", "NativeRetention", "cutoff_of", "newer_than"]


@dataclass(frozen=True, slots=True)
class NativeRetention:
    """The table's defaults. `older_than_ms` (a fixed instant, from a flag) replaces `max_snapshot_age_ms`.

    `ranges`, by branch, where the format keeps an unbroken range of each: then nothing else here decides on snapshots.
    """

    max_snapshot_age_ms: int
    min_snapshots_to_keep: int
    max_ref_age_ms: int = LONGEST_AGE_MS
    older_than_ms: int | None = None
    ranges: Mapping[str, Range] | None = None

    def cutoff(self, now_ms: int) -> int:
        """Returns the instant before which snapshots may go; a snapshot exactly at it stays."""
        return cutoff_of(self.max_snapshot_age_ms, now_ms) if self.older_than_ms is None else self.older_than_ms

    def age_text(self) -> str:
        """Returns which snapshots the default age keeps."""
        if self.older_than_ms is not None:
            return f"newer than {format_instant(self.older_than_ms)}"
        return newer_than(self.max_snapshot_age_ms)

    def describe(self) -> str:
        """Returns the defaults in English."""
        if self.ranges is not None:
            others = len(self.ranges) - 1
            each = f"; {others} other branches by theirs" if others else ""
            told = self.ranges[MAIN].describe(None if self.older_than_ms is None else self.age_text())
            return f"an unbroken range of {told}{each}"
        refs = "for ever" if self.max_ref_age_ms >= LONGEST_AGE_MS else format_duration(self.max_ref_age_ms)
        return f"{self.min_snapshots_to_keep} per branch and what is {self.age_text()}; refs {refs}"
