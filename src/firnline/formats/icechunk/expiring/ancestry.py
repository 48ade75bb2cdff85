"""The history of a repository as an expiry sees it: snapshots, refs, and where each line of ancestors ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace

from firnline.formats.icechunk.reading.history import HistorySnapshot
from firnline.formats.icechunk.reading.repository import IcechunkRepository
from firnline.model.snapshots import Ref


@dataclass(frozen=True, slots=True)
class RefHistory:
    """Snapshots with their parents, all of which are there and none its own ancestor, and the refs that lead to them.

    A snapshot to which no ref leads may be among them: version 2 lists such.
    """

    snapshots: Mapping[str, HistorySnapshot]
    refs: tuple[Ref, ...]

    @staticmethod
    def of(repository: IcechunkRepository) -> RefHistory:
        return RefHistory(repository.snapshots, tuple(repository.refs))

    def line(self, snapshot: str) -> Iterator[str]:
        """Yields a snapshot and all before it, the newest first."""
        here: str | None = snapshot
        while here is not None:
            yield here
            here = self.snapshots[here].parent

    def reachable(self) -> set[str]:
        """Returns the snapshots that refs lead to. Each is walked once, however many refs lead to it."""
        found: set[str] = set()
        for ref in self.refs:
            for snapshot in self.line(ref.snapshot):
                if snapshot in found:
                    break
                found.add(snapshot)
        return found

    def oldest_first(self) -> Iterator[HistorySnapshot]:
        """Yields every snapshot after its parent."""
        told: set[str] = set()
        for snapshot in self.snapshots:
            due: list[str] = []
            here: str | None = snapshot
            while here is not None and here not in told:
                due.append(here)
                here = self.snapshots[here].parent
            told.update(due)
            yield from (self.snapshots[each] for each in reversed(due))

    def edited(self, parents: Mapping[str, str]) -> RefHistory:
        """Returns the history with other parents for some snapshots, which keep their ids, times and all else."""
        changed = {name: replace(self.snapshots[name], parent=parent) for name, parent in parents.items()}
        return RefHistory({**self.snapshots, **changed}, self.refs)

    def without(self, snapshots: Set[str] = frozenset(), refs: Iterable[Ref] = ()) -> RefHistory:
        gone = set(refs)
        left = {name: each for name, each in self.snapshots.items() if name not in snapshots}
        return RefHistory(left, tuple(ref for ref in self.refs if ref not in gone))


def survivors_since(history: RefHistory, threshold_us: int) -> set[str]:
    """Returns what a threshold lets live: only what is older expires, and what is just as old does not."""
    return {each.id for each in history.snapshots.values() if each.flushed_us >= threshold_us}


@dataclass(frozen=True, slots=True)
class Footing:
    """What lies at and below a snapshot on its line of ancestors.

    `youngest` and `oldest` are the survivors nearest to it and farthest from it, the root left out: that never goes.
    `gap` is the pair nearest to it of a snapshot that is to go and a survivor somewhere below.
    """

    root: str
    youngest: str | None = None
    oldest: str | None = None
    gap: tuple[str, str] | None = None


def footings(history: RefHistory, survivors: Set[str]) -> dict[str, Footing]:
    """Returns the footing of every snapshot, each made of its parent's: a thousand tags on one line cost one walk."""
    found: dict[str, Footing] = {}
    for each in history.oldest_first():
        found[each.id] = _above(found[each.parent], each.id, survivors) if each.parent else Footing(each.id)
    return found


def _above(below: Footing, snapshot: str, survivors: Set[str]) -> Footing:
    if snapshot in survivors:
        return replace(below, youngest=snapshot, oldest=below.oldest or snapshot)
    return replace(below, gap=(snapshot, below.youngest)) if below.youngest else below
