"""A format's own retention settings: what counts where nobody wrote a firnline policy."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from firnline.model.snapshots import MAIN
from firnline.model.times import format_duration, tell_instant
from firnline.policy.periods import LONGEST_AGE_MS, cutoff_of, newer_than

LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Range:
    """What a branch keeps: `at_least` numbers, `at_most` numbers, and between these what is young.

    `by_next`: a snapshot counts as young as long as the one after it is, which is when it was last the newest (Paimon
    2); else by its own time (up to 1.4). At most `limit` go at once.
    """

    at_least: int
    at_most: int
    age_ms: int
    limit: int = LARGEST
    by_next: bool = True

    def first_kept(
        self, times: Mapping[int, int], cutoff_ms: int, latest: int | None = None, below: int = sys.maxsize
    ) -> int:
        """Returns the lowest number that stays, of snapshots by number with their times.

        For changelogs `latest` is the newest snapshot, from which they are counted; nothing from `below` on goes.
        """
        earliest, latest = min(times), max(times) if latest is None else latest
        end = min(latest - self.at_least + 1, earliest + self.limit, below)
        begin = max(latest - self.at_most + 1, earliest)
        young = (self._judged_by(number) for number, said in times.items() if said >= cutoff_ms)
        return max(min((number for number in young if begin <= number < end), default=end), earliest)

    def _judged_by(self, number: int) -> int:
        """Returns the number whose age the time of this one tells."""
        return number - 1 if self.by_next else number

    def why(self, number: int, times: Mapping[int, int], cutoff_ms: int, age_text: str) -> str:
        """Returns why a number of the range stays."""
        if number > max(times) - self.at_least:
            return f"{max(times) - number + 1} of {self.at_least}"
        young = times.get(number + 1 if self.by_next else number)
        if young is not None and young >= cutoff_ms:
            return age_text
        if number >= min(times) + self.limit:
            return f"no more than {self.limit} go at once"
        return "above one that stays"

    def describe(self, age_text: str | None = None) -> str:
        """Returns the range in English; `age_text` stands in for an age that was replaced."""
        most = "" if self.at_most >= LARGEST else f", at most {self.at_most}"
        limit = "" if self.limit >= LARGEST else f", {self.limit} going at once"
        meaning = "by the time of the next one" if self.by_next else "by its own time"
        return f"at least {self.at_least}{most}, and what is {age_text or newer_than(self.age_ms)} {meaning}{limit}"


__all__ = ["LONGEST_AGE_MS", "NativeRetention", "cutoff_of", "newer_than"]


@dataclass(frozen=True, slots=True)
class NativeRetention:
    """The table's defaults. `older_than_ms` (a fixed instant, from a flag) replaces `max_snapshot_age_ms`.

    `ranges`, by branch, where the format keeps an unbroken range of each: then nothing else here decides on snapshots.
    `is_written`: the format has a place for them; else nobody but firnline knows them.
    """

    max_snapshot_age_ms: int
    min_snapshots_to_keep: int
    max_ref_age_ms: int = LONGEST_AGE_MS
    older_than_ms: int | None = None
    ranges: Mapping[str, Range] | None = None
    is_written: bool = True

    @property
    def has_age(self) -> bool:
        """Tells whether there is an age that was written or that the format says. Where there is none, the format
        itself guards what is staged.
        """
        return self.is_written or self.older_than_ms is not None

    def cutoff(self, now_ms: int) -> int:
        """Returns the instant before which snapshots may go; a snapshot exactly at it stays."""
        return cutoff_of(self.max_snapshot_age_ms, now_ms) if self.older_than_ms is None else self.older_than_ms

    def age_text(self) -> str:
        """Returns which snapshots the default age keeps."""
        if self.older_than_ms is not None:
            return f"newer than {tell_instant(self.older_than_ms)}"
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
