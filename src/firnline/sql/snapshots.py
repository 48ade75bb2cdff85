"""`snapshots` and `all_snapshots`: Iceberg's columns for any format, and whether a snapshot expired.

Expired ones are read object by object on executors: however many there are, a task holds one segment.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice

import pyarrow as pa

from firnline.errors import UnsupportedFormat
from firnline.history.listing import Entry, id_of, parent_of, summary_of, time_of
from firnline.history.opening import History, Segment, newest, read_segment
from firnline.model.snapshots import SnapshotId, number_of
from firnline.policy.tiers import LIVE
from firnline.ports.formats import TableFormat
from firnline.ports.stores import Get
from firnline.sql.relations import Piece, TimeBounds

INSTANT = pa.timestamp("us", "UTC")
TEXTS = pa.map_(pa.string(), pa.string())
SNAPSHOTS = pa.schema(
    [
        ("committed_at", INSTANT),
        ("snapshot_id", pa.int64()),
        ("parent_id", pa.int64()),
        ("operation", pa.string()),
        ("manifest_list", pa.string()),
        ("summary", TEXTS),
    ]
)
ALL_SNAPSHOTS = SNAPSHOTS.append(pa.field("expired", pa.bool_())).append(pa.field("tier", pa.string()))
_BATCH = 10_000
_LIVE_AT_ONCE = 100_000


@dataclass(frozen=True, slots=True)
class Live:
    """A range of the snapshots that are in the table."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Newest:
    """The lists that the table points at: what expired last."""


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The snapshots of one version of a table, and what its history remembers (None: only live ones are asked for).
    `tiers` says by the ids of expired ones in which tier each can be read.
    """

    format: TableFormat
    store: Get
    table: str
    version: str
    history: History | None
    live: frozenset[SnapshotId] = field(repr=False)
    tiers: Mapping[SnapshotId, str] = field(default_factory=dict, repr=False)

    @property
    def schema(self) -> pa.Schema:
        return SNAPSHOTS if self.history is None else ALL_SNAPSHOTS

    def pieces(self, bounds: TimeBounds) -> Sequence[Piece]:
        live = [Live(start, start + _LIVE_AT_ONCE) for start in range(0, len(self.live), _LIVE_AT_ONCE)]
        return [*(live if bounds.expired is not True else ()), *self._remembered(bounds)]

    def _remembered(self, bounds: TimeBounds) -> Iterator[Piece]:
        if self.history is None or self.history.is_empty or bounds.expired is False:
            return
        yield from (each for each in self.history.segments if bounds.meets(each.first_ms, each.last_ms))
        yield Newest()

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with uncollected():
            entries, expired = iter(self._entries(piece)), not isinstance(piece, Live)
            while some := list(islice(entries, _BATCH)):
                yield batch_of(some, columns, self.tiers if expired else None)

    def _entries(self, piece: Piece) -> Iterator[Entry]:
        match piece:
            case Live(start, stop):
                state = self.format.load(self.table, self.version)
                return islice(self.format.snapshot_objects(state), start, stop)
            case Segment():
                found = read_segment(self.store, piece)
            case _:
                assert self.history is not None
                found = newest(self.store, self.history)
        return (entry for entry in found if id_of(entry) not in self.live)


@contextmanager
def uncollected() -> Iterator[None]:
    """Keeps Python from looking for cycles: what is read from JSON has none, and looking doubles the time it takes."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


_COLUMNS: Mapping[str, Callable[[Sequence[Entry]], pa.Array]] = {
    "committed_at": lambda entries: pa.array([time_of(each) * 1000 for each in entries], INSTANT),
    "snapshot_id": lambda entries: numbers([each["snapshot-id"] for each in entries]),
    "parent_id": lambda entries: numbers([parent_of(each) for each in entries]),
    "operation": lambda entries: pa.array([summary_of(each).get("operation") for each in entries], pa.string()),
    "manifest_list": lambda entries: pa.array([each.get("manifest-list") for each in entries], pa.string()),
    "summary": lambda entries: _maps([summary_of(each) for each in entries]),
}


def batch_of(
    entries: Sequence[Entry], columns: Sequence[str], tiers: Mapping[SnapshotId, str] | None
) -> pa.RecordBatch:
    """Returns the columns straight from the snapshots: nothing is made for one that nobody asked for. `tiers` is None
    for live ones.
    """
    schema = pa.schema([ALL_SNAPSHOTS.field(name) for name in columns])
    where = {
        "expired": lambda: pa.repeat(pa.scalar(tiers is not None), len(entries)),
        "tier": lambda: pa.array([LIVE if tiers is None else tiers.get(id_of(each)) for each in entries], pa.string()),
    }
    arrays = [where[name]() if name in where else _COLUMNS[name](entries) for name in columns]
    return pa.record_batch(arrays, schema=schema)


def numbers(ids: Sequence[str | int | None]) -> pa.Array:
    """Returns ids as the numbers that Iceberg's tables have; of a branch that counts on its own, its numbers.

    Raises UnsupportedFormat where they are none.
    """
    try:
        return pa.array([None if each is None else _number(each) for each in ids], pa.int64())
    except (ValueError, OverflowError, pa.ArrowInvalid):
        raise UnsupportedFormat(
            "a snapshot's id is not a number of 64 bits", hint="this table has no such view"
        ) from None


def _number(snapshot: str | int) -> int:
    found = snapshot if isinstance(snapshot, int) else number_of(snapshot)
    if found is None:
        raise ValueError(f"{snapshot} is no number")
    return found


def _maps(said: Sequence[Mapping[str, str]]) -> pa.Array:
    """Returns a column of maps, without the operation, which has a column of its own.

    Made of its parts: a list of pairs for each row would take most of the time.
    """
    rests = [{name: value for name, value in each.items() if name != "operation"} for each in said]
    offsets = list(accumulate(map(len, rests), initial=0))
    keys = list(chain.from_iterable(rests))
    values = list(chain.from_iterable(each.values() for each in rests))
    return pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(keys, pa.string()), pa.array(values, pa.string())
    )
