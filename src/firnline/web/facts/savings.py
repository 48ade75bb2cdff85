"""What runs have saved, day by day: from their own records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firnline.journal.outcomes import Outcome
from firnline.model.files import Tally
from firnline.model.times import DAY_MS, format_instant

if TYPE_CHECKING:
    from firnline.ops.runs.status import RunStatus


@dataclass(frozen=True, slots=True)
class SavedDay:
    """A day in UTC: how many runs last did something on it, and what these deleted."""

    day: str
    at_ms: int
    runs: int
    deleted: Tally

    def to_json(self) -> dict[str, Any]:
        return {"day": self.day, "runs": self.runs, "files": self.deleted.files, "bytes": self.deleted.bytes}


@dataclass(frozen=True, slots=True)
class Savings:
    """Days on which runs deleted anything, the oldest first."""

    days: tuple[SavedDay, ...]

    @property
    def all(self) -> Tally:
        return sum((each.deleted for each in self.days), Tally())

    def to_json(self) -> dict[str, Any]:
        return {"files": self.all.files, "bytes": self.all.bytes, "days": [each.to_json() for each in self.days]}


def savings_of(runs: Iterable[RunStatus]) -> Savings:
    """Returns what runs deleted, by the day of the last thing that their records tell."""
    found: dict[int, tuple[int, Tally]] = {}
    for each in runs:
        deleted = each.outcomes.get(Outcome.DELETED, Tally())
        if deleted.files:
            day = each.run.events[-1].at_ms // DAY_MS
            count, before = found.get(day, (0, Tally()))
            found[day] = (count + 1, before + deleted)
    days = (
        SavedDay(format_instant(day * DAY_MS)[:10], day * DAY_MS, count, deleted)
        for day, (count, deleted) in sorted(found.items())
    )
    return Savings(tuple(days))
