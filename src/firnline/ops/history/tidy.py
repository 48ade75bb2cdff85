"""Clearing away what nothing points at any more: superseded history, and notes of commits that took several requests.

Two can ask how far a commit came. A run's record names its tries, and the process that carries the run on reads their
notes: so what an unfinished run names stays. And a process that is in the middle of a commit reads its own; a tag or a
hold that a command makes is in no run's record, so there only that process does. It ends minutes after it began, and a
day is a wide margin. One that was frozen for longer finds no note, and then the folder tells: where anything of its
commit was done, the folder is not the one that the commit was made from any more, so it loses and is made anew.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import suppress

from firnline.errors import FirnlineError, ObjectNotFound, RefusedForSafety, StoreError, UnreadableMetadata
from firnline.history.names import HistoryPointer, home_of, is_of_table, pointer_of
from firnline.history.opening import read_index
from firnline.inflate import gunzipped
from firnline.journal.events import RunState
from firnline.journal.runs import Run
from firnline.model.locations import within
from firnline.model.times import DAY_MS
from firnline.ops.neighbours.around import is_registered_elsewhere
from firnline.ops.table.context import TableContext
from firnline.ports.abilities import KeepsVersions
from firnline.ports.catalogs import StepwiseCommit
from firnline.ports.discard import OwnKey, OwnName, own_keys
from firnline.ports.formats import State

MOST_READ = 1 << 30
"""Bytes of metadata that are read to find out what still points where; above it everything stays."""

_GZIP = b"\x1f\x8b"
_ON_THEIR_WAY = (RunState.COMMITTING, RunState.UNDOING)


def tidy(work: TableContext, state: State) -> None:
    """Discards what no version of the metadata names, neither this one nor one of its log. Nothing goes from a table
    that is registered twice: versions that the other one still has may have left this one's log.

    Nothing of it matters for a run: where anything cannot be read, everything stays.
    """
    with suppress(StoreError, UnreadableMetadata, RefusedForSafety):
        pointer = pointer_of(state)
        if work.discard is None or pointer is None or not _is_here(state, pointer):
            return
        unneeded = _listed(work, pointer) - _needed(work, pointer)
        if unneeded and not is_registered_elsewhere(work, state):
            unneeded -= _named_elsewhere(work, state, pointer, unneeded)
            work.discard.discard([OwnKey(pointer.folder, name) for name in sorted(unneeded)])


def _is_here(state: State, pointer: HistoryPointer) -> bool:
    """Tells whether the history is this table's, and with it: of a table that was copied or moved, files in the old
    place may be named by versions that are not seen from here.
    """
    return is_of_table(state, pointer.path) and within(home_of(state), pointer.path)


def _listed(work: TableContext, pointer: HistoryPointer) -> set[str]:
    return {each.name for each in own_keys(pointer.folder, work.store.list(pointer.folder), OwnName.HISTORY)}


def _needed(work: TableContext, pointer: HistoryPointer) -> set[str]:
    named = [pointer.path] if pointer.index is None else [pointer.path, pointer.index, *_segments(work, pointer.index)]
    return {key.rpartition("/")[2] for key in named}


def _segments(work: TableContext, index: str) -> list[str]:
    return [each.key for each in read_index(work.store, index)]


def _named_elsewhere(work: TableContext, state: State, pointer: HistoryPointer, names: set[str]) -> set[str]:
    """Returns which of the names any version of the metadata holds, or a run whose try may still be on its way.

    Versions are searched as text: nobody needs their snapshots here.
    """
    found: set[str] = set()
    for text in _texts(work, state):
        found |= {name for name in names if name.encode() in text}
    indexes = [f"{pointer.folder}/{name}" for name in found if name.startswith("index-")]
    return found | {key.rpartition("/")[2] for index in indexes for key in _segments(work, index)}


def _texts(work: TableContext, state: State) -> Iterator[bytes]:
    yield from (_said(run) for run in work.recorded(state) if run.state in _ON_THEIR_WAY)
    table_format, left = work.source.format, MOST_READ
    # Without earlier versions the present pointer is the only one, and many files would be read in vain.
    for key, _ in reversed(table_format.versions(state)) if isinstance(table_format, KeepsVersions) else ():
        with suppress(ObjectNotFound):
            left -= work.store.head(key).size
            if left < 0:
                raise UnreadableMetadata("too much metadata to search", hint="old history files stay for now")
            data = work.store.get(key)
            yield _plain(data, key, left) if data.startswith(_GZIP) else data


def _plain(data: bytes, key: str, left: int) -> bytes:
    try:
        return gunzipped(data, left)
    except (ValueError, zlib.error) as damage:
        raise UnreadableMetadata(f"{key}: {damage}", hint="old history files stay for now") from damage


def _said(run: Run) -> bytes:
    return json.dumps([event.detail.get("history") for event in run.events]).encode()


def clear_notes(work: TableContext, state: State) -> None:
    """Discards notes that are a day old by the store's clock and that no unfinished run names.

    Where anything cannot be read, all of them stay.
    """
    commits = work.source.commits
    if work.discard is None or not isinstance(commits, StepwiseCommit):
        return
    with suppress(FirnlineError):
        folder = commits.notes
        before = work.now() - DAY_MS
        found = [each for each in work.store.list(folder) if each.modified_ms is not None and each.modified_ms < before]
        notes = own_keys(folder, found, OwnName.NOTE)
        open_tries = _open_tries(work, state) if notes else set()
        work.discard.discard([each for each in notes if each.name.partition(".")[0] not in open_tries])


def _open_tries(work: TableContext, state: State) -> set[str]:
    unfinished = (run for run in work.recorded(state) if not run.is_finished)
    return {str(event.detail["id"]) for run in unfinished for event in run.events if "id" in event.detail}
