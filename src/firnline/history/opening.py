"""A table's history, opened: which lists and segments hold it, read part by part when they are asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence, Set
from dataclasses import asdict, dataclass

from firnline.errors import UnreadableMetadata
from firnline.history.listing import HINT, Entry, id_of, parse_list, read_list, read_object, time_of, unreadable
from firnline.history.names import is_of_table, pointer_of
from firnline.model.locations import identity, within
from firnline.model.snapshots import SnapshotId
from firnline.ports.formats import State
from firnline.ports.stores import Get

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Segment:
    """One older part: a plain list, and what tells without opening it whether it matters for a time."""

    key: str
    count: int
    size: int
    first_ms: int
    last_ms: int
    sha256: str


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_segment(store: Get, segment: Segment) -> list[Entry]:
    """Returns the snapshots. Raises UnreadableMetadata where its bytes are not those that the index vouches for."""
    data = read_object(store, segment.key)
    if digest_of(data) != segment.sha256:
        raise unreadable(segment.key, "it is not as it was written")
    return parse_list(data, segment.key)


def index_bytes(segments: Sequence[Segment]) -> bytes:
    return json.dumps({"version": _VERSION, "segments": [asdict(each) for each in segments]}, indent=1).encode()


def read_index(store: Get, key: str) -> tuple[Segment, ...]:
    """Returns the segments, oldest first. Raises UnreadableMetadata where the index is missing or not understood."""
    try:
        said = json.loads(read_object(store, key))
        if said["version"] != _VERSION:
            raise ValueError(f"version {said['version']!r} is not understood")
        return tuple(Segment(**each) for each in said["segments"])
    except (ValueError, KeyError, TypeError, RecursionError) as damage:
        raise unreadable(key, damage) from None


@dataclass(frozen=True, slots=True)
class History:
    """The objects of one history: lists that the table points at, the first counts; and older segments."""

    lists: tuple[str, ...] = ()
    segments: tuple[Segment, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.lists


def open_history(store: Get, state: State, declared: str | None) -> History:
    """Returns the history that the table points at; `declared` is what the document's own field says.

    Reads at most an index. Where property and field differ, both lists count: the writer of either meant to
    keep what is in it. Raises UnreadableMetadata where a pointer leads to another table's file.
    """
    pointer = pointer_of(state)
    lists = [] if pointer is None else [pointer.path]
    if pointer is not None:
        _refuse_foreign(state, pointer.path, is_of_table(state, pointer.path))
    if declared and all(identity(declared) != identity(each) for each in lists):
        own = any(within(folder, declared) for folder in state.owned) or is_of_table(state, declared)
        _refuse_foreign(state, declared, own)
        lists.append(declared)
    index = None if pointer is None else pointer.index
    if index is not None:
        _refuse_foreign(state, index, is_of_table(state, index))
    return History(tuple(lists), () if index is None else read_index(store, index))


def _refuse_foreign(state: State, path: str, own: bool) -> None:
    if not own:
        raise UnreadableMetadata(
            f"the history of expired snapshots of {state.table} points at a file that is not this table's: {path}",
            hint=HINT,
        )


def newest(store: Get, history: History) -> list[Entry]:
    """Returns what the lists hold, each snapshot once."""
    found: dict[SnapshotId, Entry] = {}
    for key in history.lists:
        for entry in read_list(store, key):
            found.setdefault(id_of(entry), entry)
    return list(found.values())


def count_until(store: Get, history: History, bound_ms: int) -> int:
    """Returns how many remembered snapshots were committed at an instant or before. Of the segments only the one that
    it falls into is read.
    """
    whole = sum(each.count for each in history.segments if each.last_ms <= bound_ms)
    cut = [each for each in history.segments if each.first_ms <= bound_ms < each.last_ms]
    read = [entry for each in cut for entry in read_segment(store, each)]
    return whole + sum(time_of(entry) <= bound_ms for entry in [*read, *newest(store, history)])


def expired_entries(store: Get, history: History, live: Set[SnapshotId]) -> Iterator[Entry]:
    """Yields every expired snapshot, the oldest parts first, one part in memory at a time.

    One that is in the table again (`live`), by whichever tool, did not expire.
    """
    for segment in history.segments:
        yield from (entry for entry in read_segment(store, segment) if id_of(entry) not in live)
    yield from (entry for entry in newest(store, history) if id_of(entry) not in live)
