"""The next version of a history: snapshots added and taken out, what is too old dropped, long lists cut."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from firnline.history.listing import Entry, bytes_of, id_of, in_order, text_of, time_of
from firnline.history.names import HistoryPointer, new_index_name, new_list_name, segment_name
from firnline.history.opening import Segment, digest_of, index_bytes
from firnline.model.locations import join
from firnline.model.snapshots import SnapshotId

LONGEST_LIST = 64 << 20
"""Characters of the list that the pointer names. A longer one is cut: every commit reads and writes it whole."""

ReadSegment = Callable[[Segment], list[Entry]]


@dataclass(frozen=True, slots=True)
class Wish:
    """What the next version holds: also `added`, nothing of `gone`, and only what is younger than `bound_ms`."""

    added: Sequence[Entry] = ()
    gone: Mapping[SnapshotId, int] | None = None
    bound_ms: int | None = None

    def allows(self, entry: Entry) -> bool:
        return self.bound_ms is None or time_of(entry) > self.bound_ms


@dataclass(frozen=True, slots=True)
class Revision:
    """A history, not yet written: its newest part, and the older ones; of those that changed, the entries."""

    newest: list[Entry]
    older: tuple[Segment | list[Entry], ...]
    changed: bool


def revise(newest: Sequence[Entry], segments: Sequence[Segment], read: ReadSegment, wish: Wish) -> Revision:
    """Returns the next version. Of the segments only those are read in which something may change."""
    out = {**{id_of(each): time_of(each) for each in wish.added}, **(wish.gone or {})}
    older = tuple(_older(segments, read, wish, out))
    kept = [entry for entry in newest if wish.allows(entry) and id_of(entry) not in out]
    fresh = {id_of(each): each for each in wish.added if wish.allows(each) and id_of(each) not in (wish.gone or {})}
    return Revision(
        in_order([*kept, *fresh.values()]), older, bool(fresh) or len(kept) < len(newest) or older != tuple(segments)
    )


def _older(
    segments: Sequence[Segment], read: ReadSegment, wish: Wish, out: Mapping[SnapshotId, int]
) -> Iterator[Segment | list[Entry]]:
    times = sorted(out.values())
    for segment in segments:
        if not _may_change(segment, wish, times):
            yield segment
        elif wish.bound_ms is None or segment.last_ms > wish.bound_ms:
            entries = read(segment)
            left = [entry for entry in entries if wish.allows(entry) and id_of(entry) not in out]
            if len(left) == len(entries):
                yield segment
            elif left:
                yield left


def _may_change(segment: Segment, wish: Wish, times: Sequence[int]) -> bool:
    place = bisect_left(times, segment.first_ms)
    touched = place < len(times) and times[place] <= segment.last_ms
    return touched or (wish.bound_ms is not None and segment.first_ms <= wish.bound_ms)


def laid_out(revision: Revision, folder: str, longest: int) -> tuple[HistoryPointer, dict[str, bytes]]:
    """Returns the pointer, and the objects that have to be there before a table may say it."""
    *cut_off, newest = _cut(_written(revision.newest), longest)
    objects: dict[str, bytes] = {}
    segments = [
        each if isinstance(each, Segment) else _segment(_written(each), folder, objects) for each in revision.older
    ]
    segments += [_segment(part, folder, objects) for part in cut_off]
    index = join(folder, new_index_name()) if segments else None
    if index is not None:
        objects[index] = index_bytes(sorted(segments, key=lambda each: (each.first_ms, each.last_ms)))
    path = join(folder, new_list_name())
    objects[path] = bytes_of(text for _, text in newest)
    return HistoryPointer(path, index), objects


_Written = list[tuple[int, str]]
"""Entries as text, each with its time."""


def _written(entries: Sequence[Entry]) -> _Written:
    return [(time_of(entry), text_of(entry)) for entry in entries]


def _segment(part: _Written, folder: str, objects: dict[str, bytes]) -> Segment:
    data = bytes_of(text for _, text in part)
    digest = digest_of(data)
    key = join(folder, segment_name(digest))
    objects[key] = data
    times = [time for time, _ in part]
    return Segment(key, len(part), len(data), min(times), max(times), digest)


def _cut(entries: _Written, longest: int) -> Iterator[_Written]:
    """Yields the entries in parts, the newest last: one part while they fit, else parts of half that size.

    So after a cut there is room again, and the next commits write little.
    """
    if sum(len(text) for _, text in entries) <= longest:
        yield entries
        return
    part: _Written = []
    filled = 0
    for entry in entries:
        if part and filled + len(entry[1]) > longest // 2:
            yield part
            part, filled = [], 0
        part.append(entry)
        filled += len(entry[1])
    yield part
