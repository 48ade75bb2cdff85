"""A format's own retention settings: what counts where nobody wrote a firnline policy."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_AGE_MS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class NativeRetention:
    """The table's defaults. `older_than_ms` (a fixed instant, from a flag) replaces `max_snapshot_age_ms`."""

    max_snapshot_age_ms: int
    min_snapshots_to_keep: int
    max_ref_age_ms: int = LONGEST_AGE_MS
    older_than_ms: int | None = None

    def cutoff(self, now_ms: int) -> int:
        """Returns the instant before which snapshots may go; a snapshot exactly at it stays."""
        return now_ms - self.max_snapshot_age_ms if self.older_than_ms is None else self.older_than_ms
