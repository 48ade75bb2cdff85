"""Opening units that several walks share: once, and by another table's means where those of the first fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from firnline.errors import FirnlineError, UnreadableMetadata
from firnline.model.spans import Numbers, Spans
from firnline.ports.expanding import Expanded, Failures

if TYPE_CHECKING:
    from firnline.walking.axis import WalkMeans

Open = Callable[[Numbers, Numbers, Failures], Iterator[Expanded]]
"""Opens the units of these numbers, each with the expand of that number; failures are told by the place in the list."""


def come_too_late() -> UnreadableMetadata:
    """Returns what ends a walk that has units left when all kinds were opened: what they name is not known."""
    return UnreadableMetadata("a unit was named by another one that it should come before", hint="this is a bug")


@dataclass(slots=True)
class Losses:
    """The walks that cannot be judged, each with the first unit of it that could not be read, and why."""

    by_walk: dict[int, tuple[int, FirnlineError]] = field(default_factory=dict)


@dataclass(slots=True)
class _Round:
    """One look at some units. What a walk lost is not read on for its sake: it cannot be judged any more."""

    means: WalkMeans
    spans: Spans
    units: Numbers
    by: Numbers
    losses: Losses

    def add(self, number: int, problem: FirnlineError) -> None:
        unit = int(self.units[number])
        starts = self._starts(unit)
        tried = self.means.openers(starts) == self.by[number]
        for walk in self.means.axis.walks(starts[tried]).tolist():
            self.losses.by_walk.setdefault(walk, (unit, problem))

    def given_up(self, number: int) -> bool:
        if not self.losses.by_walk:
            return False
        walks = self.means.axis.walks(self._starts(int(self.units[number])))
        return all(walk in self.losses.by_walk for walk in walks.tolist())

    def _starts(self, unit: int) -> Numbers:
        first, end = np.searchsorted(self.spans.owner, [unit, unit + 1]).tolist()
        return self.spans.start[first:end]


def opened_once(
    means: WalkMeans, spans: Spans, units: int, open_some: Open, losses: Losses
) -> Iterator[tuple[Expanded, Spans]]:
    """Yields what the units name, by the number of the unit, with the spans that it is read for.

    A unit that the means of its first table cannot read, or do not find where one may be gone, is tried by those of the
    others that reach it: each table is judged as it would be alone. `spans` are those of the units; what cannot be read
    is noted in `losses`.
    """
    left, due = spans, np.arange(units)
    while len(due):
        by = means.openers(left.start[np.searchsorted(left.owner, due)])
        is_told = np.zeros(units, dtype=bool)
        for answer in open_some(due, by, _Round(means, left, due, by, losses)):
            found = answer.numbered(due.tolist())
            is_told[found.of] = True  # by itself at the least, if it is there
            yield found, left
        again = ~is_told[left.owner] & (means.openers(left.start) != by[np.searchsorted(due, left.owner)])
        left = Spans(left.owner[again], left.start[again], left.end[again])
        due = np.unique(left.owner)
