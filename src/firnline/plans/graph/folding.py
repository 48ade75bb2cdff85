"""A graph as rows, one below the other: the oldest above, a row per snapshot, and rows of many that are folded.

Where a history branches, the larger part goes straight on and the rest is set to the right. So the rows of a million
snapshots are at most some twenty steps deep. Snapshots in a row of which there is nothing to tell are folded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import takewhile

from firnline.model.drawing import SnapshotFate
from firnline.model.snapshots import SnapshotId
from firnline.plans.graph.facts import GraphSnapshot, LabelKind

_UNFOLDED = 4
"""Up to so many snapshots in a row are all shown."""
LEGIBLE = 60
"""So many rows a person looks through; more are folded further."""


class Folding(IntEnum):
    """What is folded together: what has one fate and no name; what has no name; and what has none but those of tags, as
    where every commit has one.
    """

    ALIKE = 0
    UNNAMED = 1
    TAGGED = 2


_PASSED_OVER = {
    Folding.ALIKE: {LabelKind.TIER},
    Folding.UNNAMED: {LabelKind.TIER},
    Folding.TAGGED: {LabelKind.TIER, LabelKind.TAG},
}
"""Of most that go to a tier all go there: that is told of the row."""


@dataclass(frozen=True, slots=True)
class GraphRow:
    """One snapshot, or many that are folded, so many steps to the right. `under` is the row that it comes after;
    `forks` where it is the first of a line that is set to the right.
    """

    snapshots: tuple[GraphSnapshot, ...]
    depth: int
    under: int | None = None
    forks: bool = False

    @property
    def is_folded(self) -> bool:
        return len(self.snapshots) > 1


def legible_rows(snapshots: Sequence[GraphSnapshot], most: int = LEGIBLE) -> list[GraphRow]:
    """Returns the rows, folded as little as so many rows allow; all of them where even the most folded are more."""
    forest = _Forest.of(snapshots)
    for folding in Folding:
        rows = list(forest.rows(folding))
        if len(rows) <= most:
            break
    return rows


def alike_rows(snapshots: Sequence[GraphSnapshot]) -> list[GraphRow]:
    """Returns the rows, of which only those are folded that have one fate and no name."""
    return list(_Forest.of(snapshots).rows(Folding.ALIKE))


@dataclass(frozen=True, slots=True)
class _Forest:
    """A history from its roots on. `children` has the one that goes straight on last."""

    by_id: Mapping[SnapshotId, GraphSnapshot]
    children: Mapping[SnapshotId, list[SnapshotId]]
    roots: list[SnapshotId]

    @staticmethod
    def of(snapshots: Sequence[GraphSnapshot]) -> _Forest:
        by_id = {each.id: each for each in snapshots}
        place = {each.id: number for number, each in enumerate(snapshots)}
        parents = _parents(by_id)
        children: dict[SnapshotId, list[SnapshotId]] = {each: [] for each in by_id}
        weights = dict.fromkeys(by_id, 1)
        for each in reversed(parents):
            parent = parents[each]
            if parent is not None:
                children[parent].append(each)
                weights[parent] += weights[each]
        for found in children.values():
            found.sort(key=lambda each: (weights[each], place[each]))
            found[:-1] = sorted(found[:-1], key=place.__getitem__)
        roots = sorted((each for each, parent in parents.items() if parent is None), key=place.__getitem__)
        return _Forest(by_id, children, roots)

    def rows(self, folding: Folding) -> Iterator[GraphRow]:
        count = 0
        due: list[tuple[SnapshotId, int, int | None, bool]] = [(each, 0, None, False) for each in reversed(self.roots)]
        while due:
            start, depth, under, forks = due.pop()
            line = list(self._line(start, folding))
            for some in _folded(line):
                yield GraphRow(tuple(self.by_id[each] for each in some), depth, under, forks)
                under, forks, count = count, False, count + 1
            onward = self.children[line[-1]]
            due.extend((each, depth, under, False) for each in onward[-1:])
            due.extend((each, depth + 1, under, True) for each in reversed(onward[:-1]))

    def _line(self, start: SnapshotId, folding: Folding) -> Iterator[SnapshotId]:
        """Yields a snapshot, and those straight after it that are folded with it."""
        yield start
        if self._is_plain(start, folding):
            fate = self.by_id[start].fate

            def belongs(each: SnapshotId) -> bool:
                alike = folding is not Folding.ALIKE or self.by_id[each].fate is fate
                return alike and self._is_plain(each, folding)

            yield from takewhile(belongs, self._onward(start))

    def _onward(self, start: SnapshotId) -> Iterator[SnapshotId]:
        here = start
        while len(self.children[here]) == 1:
            (here,) = self.children[here]
            yield here

    def _is_plain(self, each: SnapshotId, folding: Folding) -> bool:
        """Tells whether nothing is to be told of a snapshot, and one other comes after it."""
        snapshot = self.by_id[each]
        told = {label.kind for label in snapshot.labels} - _PASSED_OVER[folding]
        return not told and snapshot.fate is not SnapshotFate.FOLLOWS_ROOT and len(self.children[each]) == 1


def _folded(line: Sequence[SnapshotId]) -> Iterator[Sequence[SnapshotId]]:
    if len(line) <= _UNFOLDED:
        yield from ([each] for each in line)
        return
    yield line[:1]
    yield line[1:-1]
    yield line[-1:]


def _parents(by_id: Mapping[SnapshotId, GraphSnapshot]) -> dict[SnapshotId, SnapshotId | None]:
    """Returns what each snapshot is drawn under, every one after its parent. A damaged chain may loop: there it is cut,
    so that every snapshot is drawn.
    """
    found: dict[SnapshotId, SnapshotId | None] = {}
    for start in by_id:
        due: dict[SnapshotId, None] = {}
        here: SnapshotId | None = start
        while here is not None and here in by_id and here not in found and here not in due:
            due[here] = None
            here = by_id[here].parent
        parent = here if here in found else None
        for each in reversed(due):
            found[each] = parent
            parent = each
    return found
