"""Whether the times that a repository's snapshots carry can be believed.

Ages come from one clock: the time that a snapshot itself says, which its writer's machine told. The library expires by
it, and an edit in place keeps it, while the store dates the edited object anew. So the store's times and those of
parents are only held against it, and never take its place: ages of two clocks would put a child before its parent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.formats.icechunk.reading.repository import IcechunkRepository
from firnline.journal.lease import LARGEST_SKEW_MS
from firnline.model.times import format_duration, format_instant

FARTHEST_US = LARGEST_SKEW_MS * 1000
"""A snapshot's own time may be so far from when the store says that it was written."""

_SET_CLOCK = "set the clock of the machine that wrote it, and have it call firnline.icechunk_writing before it commits"
_LATER = f"{_SET_CLOCK}; copied objects, and local files of another mode or owner, are as young as that change"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A snapshot's own time, and one that contradicts it: its parent's; without a `parent` the store's, which says when
    the object was written.
    """

    snapshot: str
    says_us: int
    other_us: int
    parent: str | None = None

    @property
    def snapshots(self) -> tuple[str, ...]:
        """Those of which one has a wrong time: nobody can tell whose clock it was, the child's or the parent's."""
        return (self.snapshot,) if self.parent is None else (self.snapshot, self.parent)

    @property
    def problem(self) -> str:
        apart = format_duration(abs(self.says_us - self.other_us) // 1000)
        if self.parent is not None:
            return f"is of {_instant(self.says_us)}, no younger than its parent {self.parent}, {apart} later"
        side = "later" if self.says_us < self.other_us else "earlier"
        return f"is of {_instant(self.says_us)}, and was written {apart} {side} by the store's clock"

    @property
    def hint(self) -> str:
        return _LATER if self.parent is None and self.says_us < self.other_us else _SET_CLOCK

    def is_split_by(self, threshold_us: int) -> bool:
        """Tells whether the snapshot survives a threshold by one of its two times, and expires by the other."""
        return (self.says_us >= threshold_us) != (self.other_us >= threshold_us)


def disagreements(
    repository: IcechunkRepository, written_ms: Mapping[str, int], edited: Set[str] = frozenset()
) -> Iterator[Disagreement]:
    """Yields what contradicts the times of snapshots, the oldest first: a parent that is no older, and a store that
    says another time. The first snapshot of a repository carries the time of its making, and is held to it as any.

    `written_ms` is when the store says that each snapshot was written, of those that it tells of. `edited` are those
    that an expiry wrote again in their place: these may be written later than they say, never earlier.
    """
    for each in sorted(repository.snapshots.values(), key=lambda each: (each.flushed_us, each.id)):
        parent = None if each.parent is None else repository.snapshots[each.parent]
        if parent is not None and each.flushed_us <= parent.flushed_us:
            yield Disagreement(each.id, each.flushed_us, parent.flushed_us, parent.id)
        late_us = _late_us(each, written_ms)
        if late_us < -FARTHEST_US or (late_us > FARTHEST_US and each.id not in edited):
            yield Disagreement(each.id, each.flushed_us, each.flushed_us + late_us)


def written_late(repository: IcechunkRepository, written_ms: Mapping[str, int]) -> list[str]:
    """Returns the snapshots that were written later than they say: their writer's clock was slow, or they were edited
    in their place since.
    """
    return [each.id for each in repository.snapshots.values() if _late_us(each, written_ms) > FARTHEST_US]


def faults_around(found: Iterable[Disagreement], threshold_us: int) -> list[Disagreement]:
    """Returns what makes a threshold doubtful: snapshots that it would expire by one clock and keep by another.

    A plan with such a threshold may take what is younger than it seems, and must be refused.
    """
    return [each for each in found if each.is_split_by(threshold_us)]


def _late_us(snapshot: HistorySnapshot, written_ms: Mapping[str, int]) -> int:
    """Returns by how much the store dates a snapshot later than that does itself; 0 where the store does not tell."""
    written = written_ms.get(snapshot.id)
    return 0 if written is None else written * 1000 - snapshot.flushed_us


def _instant(microseconds: int) -> str:
    return format_instant(microseconds // 1000)
