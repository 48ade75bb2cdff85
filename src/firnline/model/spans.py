"""Which roots reach what, as spans of their numbers; and which units are opened together.

Roots are numbered, those of kept snapshots first. A manifest that a hundred snapshots in a row share is reached by one
span [start, end) of numbers. An entry that adds a file counts one in every root that its spans cover, an entry that
removes it counts one less: a root needs the file where the sum is above zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from firnline.model.files import File

MOST_UNITS = 256
MOST_BYTES = 4 << 20
_SIZE_UNKNOWN = 32 << 10
"""What a unit counts as whose size only opening it tells, such as a manifest list."""


def portions(units: Iterable[File], most_units: int = MOST_UNITS, most_bytes: int = MOST_BYTES) -> Iterator[list[File]]:
    """Yields the units in their order, in lists of at most so many units and, but for a larger one alone, bytes."""
    portion: list[File] = []
    size = 0
    for unit in units:
        more = _SIZE_UNKNOWN if unit.size is None else unit.size
        if portion and (len(portion) == most_units or size + more > most_bytes):
            yield portion
            portion, size = [], 0
        portion.append(unit)
        size += more
    if portion:
        yield portion


Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


class Spans(NamedTuple):
    """Spans of several owners, each with the number of its owner; sorted by owner, then by start."""

    owner: Numbers
    start: Numbers
    end: Numbers

    def of(self, owners: Numbers) -> tuple[Numbers, Numbers]:
        """Returns the place of each owner in the list, and the place of a span of it: a pair for each of its spans."""
        first = np.searchsorted(self.owner, owners, side="left")
        counts = np.searchsorted(self.owner, owners, side="right") - first
        places = np.repeat(np.arange(len(owners)), counts)
        before = np.repeat(np.cumsum(counts) - counts, counts)
        return places, first[places] + np.arange(len(places)) - before


def numbers(values: Any) -> Numbers:
    return np.asarray(values, dtype=np.int64)


def merged(owner: Any, start: Any, end: Any) -> Spans:
    """Returns the spans of each owner without overlaps; what touches is one."""
    owner, start, end = numbers(owner), numbers(start), numbers(end)
    if not len(owner):
        return Spans(owner, start, end)
    order = np.lexsort((start, owner))
    owner, start, end = owner[order], start[order], end[order]
    # One long axis on which every owner has a stretch of its own, so that a single running maximum serves all.
    stretch = owner * (int(end.max()) + 2)
    reached = np.maximum.accumulate(end + stretch)
    begins = np.ones(len(owner), dtype=bool)
    begins[1:] = (start + stretch)[1:] > reached[:-1]
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(owner)) - 1
    return Spans(owner[first], start[first], (reached - stretch)[last])


class Alive(NamedTuple):
    """By file: whether a kept root needs it, and whether any root does."""

    needed: Flags
    reached: Flags


def alive(files: int, entries: SpanEntries, kept: int) -> Alive:
    """Returns which of `files` the roots need; the roots below `kept` are those of kept snapshots.

    Entries cancel each other only within one file and one fold: an entry that removes a file at one level says
    nothing of the same file at another.
    """
    found = Alive(np.zeros(files, dtype=bool), np.zeros(files, dtype=bool))
    if not len(entries.file):
        return found
    # Every span is two steps, up at its start and down at its end, so that sums begin at zero in each fold.
    file, fold = np.tile(entries.file, 2), np.tile(entries.fold, 2)
    place = np.concatenate([entries.start, entries.end])
    step = np.concatenate([entries.op, -entries.op])
    order = np.lexsort((place, fold, file))
    file, fold, place = file[order], fold[order], place[order]
    level = np.cumsum(step[order])
    same = (file[1:] == file[:-1]) & (fold[1:] == fold[:-1])
    above = np.flatnonzero(same & (place[1:] > place[:-1]) & (level[:-1] > 0))
    found.reached[file[above]] = True
    found.needed[file[above[place[above] < kept]]] = True
    return found


class SpanEntries(NamedTuple):
    """What units say of files: the file's number, what it folds by, +1 or -1, and a span of roots that read it."""

    file: Numbers
    fold: Numbers
    op: Numbers
    start: Numbers
    end: Numbers
