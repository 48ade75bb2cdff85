"""Remembering what expires: the next history is written before the commit that points at it, and in every try anew."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from firnline.errors import UnreadableMetadata
from firnline.history.listing import Entry, id_of, time_of
from firnline.history.names import HistoryPointer, folder_of, pointer_of
from firnline.history.opening import History, Segment, newest, open_history, read_segment
from firnline.history.revise import LONGEST_LIST, Wish, laid_out, revise
from firnline.journal.layout import RunId
from firnline.journal.parts import put_own
from firnline.model.locations import within
from firnline.model.removals import Removal
from firnline.model.snapshots import SnapshotId
from firnline.ops.history.reading import declared_history
from firnline.ops.runs.decision import Settled
from firnline.ops.table.context import TableContext
from firnline.ports.formats import Amendment, State


class RunHistory:
    """The history of one table while a run changes it. `noted` is what the run's record says of the last try.

    A history is read once, however many races are lost: its objects never change, only the pointer does.
    """

    def __init__(self, work: TableContext, run: RunId) -> None:
        self._work = work
        self._run = run
        self._read: dict[tuple[str, ...], list[Entry]] = {}
        self.noted: Mapping[str, Any] | None = None

    def expiring(self, state: State, snapshots: Set[SnapshotId], settled: Settled, *, new: bool) -> Amendment:
        """Returns what the commit has to write so that the table remembers these; nothing where it is not to.

        Raises UnreadableMetadata where the present history cannot be read, unless a `new` one may be begun: to go on
        without it would lose what it holds.
        """
        bound = settled.effective.history.value
        self.noted = None
        if bound is None:
            return Amendment()
        bound_ms = bound.cutoff_ms(settled.decision.now_ms)
        self.noted = {"bound_ms": bound_ms}
        added = [each for each in self._work.source.format.snapshot_objects(state) if id_of(each) in snapshots]
        wish = Wish(added, bound_ms=bound_ms)
        try:
            return self._amendment(state, self._opened(state), wish, _folder(state))
        except UnreadableMetadata:
            if not new:
                raise
            return self._amendment(state, History(), wish, folder_of(state, self._run.stamp))

    def returning(self, state: State, removal: Removal) -> Amendment:
        """Returns what an undo has to write so that the history does not name what is back.

        One that cannot be read stays as it is: bringing snapshots back is worth more, and who reads a history leaves
        out what is in the table.
        """
        self.noted = None
        gone = {id_of(each): time_of(each) for each in removal.snapshots}
        return self._if_readable(state, Wish(gone=gone))

    def leaving_again(self, state: State, snapshots: Set[SnapshotId], removal: Removal) -> Amendment:
        """Returns what has to be written where an undo is taken back: its snapshots expired after all."""
        self.noted = None
        return self._if_readable(state, Wish([each for each in removal.snapshots if id_of(each) in snapshots]))

    def _if_readable(self, state: State, wish: Wish) -> Amendment:
        try:
            history = self._opened(state)
            return Amendment() if history.is_empty else self._amendment(state, history, wish, _folder(state))
        except UnreadableMetadata:
            return Amendment()

    def _opened(self, state: State) -> History:
        return open_history(self._work.store, state, declared_history(self._work.source.format, state))

    def _amendment(self, state: State, history: History, wish: Wish, folder: str) -> Amendment:
        """Returns the pointer to the next version, which is in the store by then."""
        revision = revise(self._newest(history), history.segments, self._segment, wish)
        if not revision.changed and len(history.lists) < 2:
            return Amendment()
        pointer, objects = laid_out(revision, folder, LONGEST_LIST)
        for key, data in objects.items():
            put_own(self._work.store, key, data)
        self.noted = {**(self.noted or {}), "path": pointer.path, "index": pointer.index}
        return pointer.amendment(state)

    def _newest(self, history: History) -> list[Entry]:
        if history.lists not in self._read:
            self._read = {history.lists: newest(self._work.store, history)}
        return self._read[history.lists]

    def _segment(self, segment: Segment) -> list[Entry]:
        return read_segment(self._work.store, segment)


def _folder(state: State) -> str:
    """Returns the folder for the next files: that of the present ones, if they lie where this table's history lies now,
    else the table's first one.
    """
    pointer: HistoryPointer | None = pointer_of(state)
    own = folder_of(state)
    return pointer.folder if pointer is not None and within(own.rpartition("/")[0], pointer.path) else own
