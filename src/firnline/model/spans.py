"""Which roots reach what, as spans of their numbers.

Roots are numbered, those of kept snapshots first. A manifest that a hundred snapshots in a row share is reached by one
span [start, end) of numbers. An entry that adds a file counts one in every root that its spans cover, an entry that
removes it counts one less: a root needs the file where the sum is above zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

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


def in_order(owner: Any, start: Any, end: Any) -> Spans:
    """Returns the spans by owner, then by start, as many as there are."""
    owner, start, end = numbers(owner), numbers(start), numbers(end)
    order = np.lexsort((start, owner))
    return Spans(owner[order], start[order], end[order])


def merged(owner: Any, start: Any, end: Any) -> Spans:
    """Returns the spans of each owner without overlaps; what touches is one."""
    owner, start, end = in_order(owner, start, end)
    if not len(owner):
        return Spans(owner, start, end)
    # One long axis on which every owner has a stretch of its own, so that a single running maximum serves all.
    stretch = owner * (int(end.max()) + 2)
    reached = np.maximum.accumulate(end + stretch)
    begins = np.ones(len(owner), dtype=bool)
    begins[1:] = (start + stretch)[1:] > reached[:-1]
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(owner)) - 1
    return Spans(owner[first], start[first], (reached - stretch)[last])


def above_zero(files: int, entries: SpanEntries) -> Spans:
    """Returns by file the spans of roots that need it, some of them twice; those of one file stand in no order.

    Entries cancel each other only within one file and one fold: an entry that removes a file at one level says
    nothing of the same file at another.
    """
    if not len(entries.file):
        return Spans(entries.file, entries.start, entries.end)
    group, file_of = _groups(files, entries)
    # Every span is two steps, up at its start and down at its end, so that sums begin and end at zero in each group.
    # A step is one number, its group, then its place, then its way: sorted with one key, at a fraction of three. Memory
    # ends long before 62 bits do.
    bits = int(entries.end.max()).bit_length()
    places, goes_up = np.concatenate([entries.start, entries.end]), np.concatenate([entries.op > 0, entries.op < 0])
    steps = np.sort(((np.tile(group, 2) << bits | places) << 1) | goes_up)
    level = np.cumsum((steps & 1) * 2 - 1)
    steps >>= 1
    above = np.flatnonzero((level[:-1] > 0) & (steps[1:] != steps[:-1]))
    place = (1 << bits) - 1
    return Spans(file_of[steps[above] >> bits], steps[above] & place, steps[above + 1] & place)


def _groups(files: int, entries: SpanEntries) -> tuple[Numbers, Numbers]:
    """Returns a number for the file and fold of each entry, and the file of each number.

    Nearly every file has one fold: its group has the file's own number, and only other folds of it are sorted.
    """
    usual = np.zeros(files, dtype=np.int64)
    usual[entries.file] = entries.fold
    odd = np.flatnonzero(usual[entries.file] != entries.fold)
    if not len(odd):
        return entries.file, np.arange(files)
    file, fold = entries.file[odd], entries.fold[odd]
    order = np.lexsort((fold, file))
    file, fold = file[order], fold[order]
    begins = np.ones(len(odd), dtype=bool)
    begins[1:] = (file[1:] != file[:-1]) | (fold[1:] != fold[:-1])
    group = entries.file.copy()
    group[odd[order]] = files - 1 + np.cumsum(begins)
    return group, np.concatenate([np.arange(files), file[begins]])


class SpanEntries(NamedTuple):
    """What units say of files: the file's number, what it folds by, +1 or -1, and a span of roots that read it."""

    file: Numbers
    fold: Numbers
    op: Numbers
    start: Numbers
    end: Numbers
