"""Which sets of survivors Icechunk's own expiry can bring about: it knows one threshold for a whole repository.

Survivors below a gap in a line, and such as are older than what is to go, are told with the snapshots that make it so.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from firnline.foreign import harmless
from firnline.formats.icechunk.expiring.ancestry import RefHistory, footings
from firnline.model.snapshots import Ref
from firnline.model.times import format_instant


@dataclass(frozen=True, slots=True)
class RefLine:
    """What of a ref's ancestors is to survive.

    `expired` says that its own snapshot is not: then nothing but the ref keeps that. `gap` is a snapshot of the line
    that is to go, and one below it that is to stay.
    """

    ref: Ref
    expired: bool
    gap: tuple[str, str] | None

    @property
    def is_young_end(self) -> bool:
        """Tells whether the survivors are the young end of the line, or none of it: an expiry can cut off the rest."""
        return self.gap is None

    def __str__(self) -> str:
        name = f"{self.ref.kind} {harmless(self.ref.name)}"
        if self.gap is not None:
            return f"{name}: {self.gap[1]} is to stay below {self.gap[0]}, which is to go"
        return f"{name}: {'expired' if self.expired else 'a young end stays'}"


def ref_lines(history: RefHistory, survivors: Set[str]) -> list[RefLine]:
    """Returns for each ref whether what survives of its line is the young end, or has gaps."""
    below = footings(history, survivors)
    return [RefLine(ref, ref.snapshot not in survivors, below[ref.snapshot].gap) for ref in history.refs]


def threshold_for(history: RefHistory, survivors: Set[str]) -> int:
    """Returns the threshold, in microseconds, that lets all of these snapshots survive, and as few others as it can.

    If `refusals` has nothing to say, there are no others among those that refs lead to.
    """
    times = [each.flushed_us for each in history.snapshots.values() if each.parent and each.id in survivors]
    return min(times, default=1 + max(each.flushed_us for each in history.snapshots.values()))


def refusals(history: RefHistory, survivors: Set[str]) -> list[str]:
    """Returns why no threshold brings these survivors about; nothing where one does."""
    gaps = [str(line) for line in ref_lines(history, survivors) if not line.is_young_end]
    return gaps or list(_refused_by_time(history, survivors))


def _refused_by_time(history: RefHistory, survivors: Set[str]) -> Iterator[str]:
    threshold = threshold_for(history, survivors)
    reached = [history.snapshots[name] for name in sorted(history.reachable())]
    going = [each for each in reached if each.parent and each.id not in survivors]
    young = [each for each in going if each.flushed_us >= threshold]
    if young:
        oldest = next(
            each.id for each in history.snapshots.values() if each.flushed_us == threshold and each.id in survivors
        )
        first = min(young, key=lambda each: each.flushed_us)
        yield (
            f"{first.id} is to go, of {_instant(first.flushed_us)}, and {oldest} to stay, which is no younger: "
            f"{_instant(threshold)}"
        )
    # On version 1 the library takes the last expired snapshot for the root, and stops at its own assertion.
    roots = (each for each in reached if each.parent is None and each.flushed_us >= threshold)
    yield from (f"{root.id} is the first snapshot, and younger than some that are to go" for root in roots if going)


def _instant(microseconds: int) -> str:
    return format_instant(microseconds // 1000)
