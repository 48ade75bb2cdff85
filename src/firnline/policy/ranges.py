"""Paimon's own retention: each branch keeps one unbroken range of numbers up to its newest snapshot."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from firnline.policy.ages import newer_than

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
        """Returns the range in English; `age_text` stands in for an age that somebody replaced."""
        most = "" if self.at_most >= LARGEST else f", at most {self.at_most}"
        limit = "" if self.limit >= LARGEST else f", {self.limit} going at once"
        meaning = "by the time of the next one" if self.by_next else "by its own time"
        return f"at least {self.at_least}{most}, and what is {age_text or newer_than(self.age_ms)} {meaning}{limit}"
