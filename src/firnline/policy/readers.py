"""What streaming readers still need of a table: pins, and what an operator should know of those who fell behind.

A stream that goes on opens the snapshot of its last offset, then each child of it up to the head of main. One that is
missing ends the stream with an error; one that it had not read yet would be lost for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from firnline.model.graph import Graph
from firnline.model.holds import Pin
from firnline.model.readers import StreamReader
from firnline.model.snapshots import SnapshotId
from firnline.model.times import DAY_MS, HOUR_MS, MINUTE_MS, format_duration

READER = "reader"
_LONG_MS = 7 * DAY_MS
"""From then on a reader that nothing limits is spoken of: it may be gone, and what it keeps adds up."""


@dataclass(frozen=True, slots=True)
class ReaderRules:
    """What the policy says of readers: how long one may stand still and count (None: for ever), and whether it keeps
    what it has read too, from where it began.
    """

    limit_ms: int | None = None
    from_start: bool = False


@dataclass(frozen=True, slots=True)
class ReaderNeeds:
    """What readers keep, and what is to be told of them. `began` are the snapshots at which they started."""

    pins: tuple[Pin, ...] = ()
    notes: tuple[str, ...] = ()
    began: tuple[tuple[str, SnapshotId], ...] = ()


@dataclass(frozen=True, slots=True)
class _Standing:
    """One reader and what it needs, newest first. `since_ms` is the commit of the first snapshot that it has not read;
    None where it has read all.
    """

    name: str
    needed: tuple[SnapshotId, ...]
    since_ms: int | None
    moved_ms: int | None

    def behind_ms(self, now_ms: int) -> int:
        return 0 if self.since_ms is None else max(0, now_ms - self.since_ms)

    def still_ms(self, now_ms: int) -> int:
        """Returns for how long it surely stands still: nothing for one of which that is not known.

        1. A table lies idle for months, and so does its reader: there is nothing to note in a checkpoint.
        2. A commit comes, and an expiry a minute later. By its checkpoint alone, the reader were long dead.
        3. A slow reader works through a year of snapshots: by what it has not read alone, it were dead too.

        So both count, and the younger one decides.
        """
        if self.moved_ms is None:
            return 0
        return min(self.behind_ms(now_ms), max(0, now_ms - self.moved_ms))


def judge_readers(
    readers: Iterable[StreamReader], graph: Graph, current: SnapshotId | None, rules: ReaderRules, now_ms: int
) -> ReaderNeeds:
    """Returns what readers keep of a table. One that stands at no snapshot of it reads another one, and keeps nothing;
    one that has read nothing yet does not tell its table, and keeps all of main.
    """
    readers = list(readers)
    found = [each for reader in readers if (each := _standing(reader, graph, current, rules)) is not None]
    pins = [pin for each in found for pin in _pins(each, rules.limit_ms, now_ms)]
    notes = [note for each in found if (note := _told(each, rules.limit_ms, now_ms))]
    began = [(each.checkpoint, each.began) for each in readers if each.began is not None and each.began in graph]
    return ReaderNeeds(tuple(pins), (*_of_unread(readers, found), *notes), tuple(began))


def limit_pins(pins: Iterable[Pin], graph: Graph, limit_ms: int | None, now_ms: int) -> ReaderNeeds:
    """Returns the pins that the table itself tells of, without those of programs that stand still for too long."""
    by_program: dict[tuple[str, int | None], list[Pin]] = {}
    for pin in pins:  # programs of one name, on two branches, each moved at a time of its own
        by_program.setdefault((pin.by, pin.moved_ms), []).append(pin)
    kept: list[Pin] = []
    notes: list[str] = []
    for (name, moved_ms), own in by_program.items():
        times = [graph[pin.snapshot].timestamp_ms for pin in own if pin.snapshot in graph]
        one = _Standing(name, tuple(pin.snapshot for pin in own), min(times, default=None), moved_ms)
        if _is_over(one, limit_ms, now_ms):
            notes.append(_given_up(one, limit_ms or 0, now_ms))
        else:
            kept += own
    return ReaderNeeds(tuple(kept), tuple(notes))


def needed_by(reader: StreamReader, graph: Graph, current: SnapshotId | None, from_start: bool) -> list[SnapshotId]:
    """Returns what a reader needs, newest first: from where it stands to the head of main. One that stands beside
    main, since the table was rolled back, needs what follows there: main may be set back to it.
    """
    line = [] if current is None else [each.id for each in graph.lineage(current)]
    if reader.at is None:
        return line
    began_here = from_start and reader.began is not None and reader.began in graph
    first = reader.began if began_here else reader.at
    if first is None or first not in graph:
        return []
    return line[: line.index(first) + 1] if first in line else _descendants(graph, first)


def _standing(reader: StreamReader, graph: Graph, current: SnapshotId | None, rules: ReaderRules) -> _Standing | None:
    needed = needed_by(reader, graph, current, rules.from_start)
    if not needed:
        return None
    unread = needed[: needed.index(reader.at)] if reader.at in needed else needed
    since_ms = graph[unread[-1]].timestamp_ms if unread else None
    return _Standing(f"{READER} {reader.checkpoint}", tuple(needed), since_ms, reader.moved_ms)


def _descendants(graph: Graph, first: SnapshotId) -> list[SnapshotId]:
    children: dict[SnapshotId, list[SnapshotId]] = {}
    for each in graph:
        if each.parent is not None:
            children.setdefault(each.parent, []).append(each.id)
    found, due = {first: None}, [first]
    while due:
        new = [each for each in children.get(due.pop(), ()) if each not in found]
        found |= dict.fromkeys(new)
        due += new
    return list(reversed(found))


def _pins(one: _Standing, limit_ms: int | None, now_ms: int) -> Iterator[Pin]:
    if _is_over(one, limit_ms, now_ms):
        return
    behind_ms = one.behind_ms(now_ms)
    how = f"{_rounded(behind_ms)} behind" if behind_ms else "which has read all"
    detail = f"{one.name.removeprefix(READER + ' ')}, {how}"
    yield from (Pin(snapshot, detail, rule=READER) for snapshot in one.needed)


def _is_over(one: _Standing, limit_ms: int | None, now_ms: int) -> bool:
    return limit_ms is not None and one.still_ms(now_ms) > limit_ms


def _told(one: _Standing, limit_ms: int | None, now_ms: int) -> str | None:
    if limit_ms is not None and _is_over(one, limit_ms, now_ms):
        return _given_up(one, limit_ms, now_ms)
    if limit_ms is None and one.still_ms(now_ms) > _LONG_MS:
        still = _rounded(one.still_ms(now_ms))
        return (
            f"{one.name} stands still for {still} and keeps {_counted(one)}: if it is gone, take it out of `readers`, "
            "or write `readers-max-age`"
        )
    return None


def _given_up(one: _Standing, limit_ms: int, now_ms: int) -> str:
    return (
        f"{one.name} stands still for {_rounded(one.still_ms(now_ms))}, longer than its limit of "
        f"{format_duration(limit_ms)} (readers-max-age): it no longer keeps {_counted(one)}"
    )


def _counted(one: _Standing) -> str:
    many = f"{len(one.needed):,} snapshots" if len(one.needed) > 1 else "the snapshot"
    return f"{many} from {one.needed[-1]} on" if len(one.needed) > 1 else f"{many} {one.needed[-1]}"


def _of_unread(readers: Iterable[StreamReader], found: Iterable[_Standing]) -> Iterator[str]:
    keeping = {each.name for each in found}
    for name in dict.fromkeys(f"{READER} {each.checkpoint}" for each in readers if each.at is None):
        if name in keeping:
            yield (
                f"{name} has read nothing yet, so it does not tell which table it reads: it keeps all of main; write "
                "it under its own table in firnline.yaml, if this is not the one"
            )


def _rounded(ms: int) -> str:
    """Returns a duration for people: no more of it than matters."""
    unit = next((each for each in (DAY_MS, HOUR_MS, MINUTE_MS) if ms >= each), 1000)
    return format_duration(max(ms, 1000) // unit * unit)
