"""A format's own retention settings: what counts where nobody wrote a firnline policy."""

from __future__ import annotations

from dataclasses import dataclass

from firnline.model.times import format_duration, format_instant

LONGEST_AGE_MS = 2**63 - 1
"""An age without end, as Iceberg writes it: its instants are 64-bit numbers of milliseconds."""

_FIRST_INSTANT_MS = -(2**63)


@dataclass(frozen=True, slots=True)
class NativeRetention:
    """The table's defaults. `older_than_ms` (a fixed instant, from a flag) replaces `max_snapshot_age_ms`."""

    max_snapshot_age_ms: int
    min_snapshots_to_keep: int
    max_ref_age_ms: int = LONGEST_AGE_MS
    older_than_ms: int | None = None

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
        refs = "for ever" if self.max_ref_age_ms >= LONGEST_AGE_MS else format_duration(self.max_ref_age_ms)
        return f"{self.min_snapshots_to_keep} per branch and what is {self.age_text()}; refs {refs}"


def cutoff_of(age_ms: int, now_ms: int) -> int:
    """Returns the instant of that age; an age without end reaches before every instant."""
    return _FIRST_INSTANT_MS if age_ms >= LONGEST_AGE_MS else now_ms - age_ms


def newer_than(age_ms: int) -> str:
    return "of any age" if age_ms >= LONGEST_AGE_MS else f"newer than {format_duration(age_ms)}"
