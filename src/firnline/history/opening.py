"""A table's history, opened: which objects hold it. What is in them is read only when somebody asks, part by part."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from firnline.errors import UnreadableMetadata
from firnline.history.index import Segment, read_index, read_segment
from firnline.history.listing import HINT, Entry, id_of, read_list
from firnline.history.names import is_of_table, pointer_of
from firnline.model.locations import identity, within
from firnline.model.snapshots import SnapshotId
from firnline.ports.formats import State
from firnline.ports.stores import Get


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

    Reads at most an index. Where property and field differ, both lists count: whoever wrote either of them meant to
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


def expired_entries(store: Get, history: History, live: Set[SnapshotId]) -> Iterator[Entry]:
    """Yields every expired snapshot, the oldest parts first, one part in memory at a time.

    One that is in the table again (`live`), whoever brought it back, did not expire.
    """
    for segment in history.segments:
        yield from (entry for entry in read_segment(store, segment) if id_of(entry) not in live)
    yield from (entry for entry in newest(store, history) if id_of(entry) not in live)
