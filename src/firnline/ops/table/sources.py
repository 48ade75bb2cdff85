"""Tables that can be read again at any moment: by their catalog's pointer, by their location, or as the mirror of
another.

Who expires a mirror by its own snapshots deletes what a branch or an older snapshot of the original needs. And who
commits to it takes the version that the original's next commit would have been published as.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from firnline.errors import RefusedForSafety, UnreadableMetadata
from firnline.ports.catalogs import Catalog, Commit, TableName
from firnline.ports.formats import State, TableFormat, UndoWindow
from firnline.ports.kits import FolderTables

_TRIES = 3


def nothing_passed(current: str) -> Iterable[str]:
    """Returns nothing: a catalog leads readers to the current metadata at once."""
    return ()


FindOriginal = Callable[[str, Iterable[str]], str | None]


@dataclass(frozen=True, slots=True)
class LocatedTable:
    """A table whose current metadata is found by `locate`, afresh at every load.

    `undo` is what its catalog allows: a format that can put snapshots back may lie behind a catalog that cannot.
    `passed` returns the metadata that readers open on their way to the current one: see `FolderTables.passed`.
    `original` returns the table that one at a location, with these metadata files, is a mirror of, if any: see `State`.
    """

    name: TableName
    format: TableFormat
    locate: Callable[[], str]
    open_commits: Callable[[], Commit]
    undo: UndoWindow = UndoWindow.AFTER_COMMIT
    passed: Callable[[str], Iterable[str]] = nothing_passed
    original: FindOriginal = lambda location, metadata: None

    @property
    def commits(self) -> Commit:
        """Opened only when something is really committed: reading needs no writing connection."""
        return self.open_commits()

    def load(self) -> State:
        """Returns the table as it is now.

        A writer that cleans up its old metadata may remove what was located before it is read. Where the pointer
        moved on meanwhile that is no damage, so the new place is read; where it did not, it is.
        """
        location = self.locate()
        for _ in range(_TRIES):
            try:
                return self._read(location)
            except UnreadableMetadata:
                moved = self.locate()
                if moved == location:
                    raise
                location = moved
        return self._read(location)

    def _read(self, location: str) -> State:
        found = self.format.load(str(self.name), location)
        state = replace(found, original=self.original(found.location, self.format.metadata_files(found)))
        if self.undo is UndoWindow.AFTER_COMMIT:
            return state
        return replace(state, capabilities=replace(state.capabilities, undo=self.undo))


def catalog_table(
    catalog: Catalog | FolderTables,
    name: TableName,
    table_format: TableFormat,
    open_commits: Callable[[], Commit],
    original: FindOriginal = lambda location, metadata: None,
) -> LocatedTable:
    return LocatedTable(name, table_format, lambda: catalog.locate(name), open_commits, catalog.undo, original=original)


def mirrored(state: State) -> str | None:
    """Returns what the table is a mirror of, in words; None for one that stands on its own."""
    if state.original is None:
        return None
    return f"the metadata of {state.table} is written over the files of another table, the one at {state.original}"


def way_out(state: State) -> str:
    """Returns what to do with a mirror instead."""
    return f"work on {state.original} itself: its writers bring the mirror up to date"


def refuse_mirror(state: State) -> None:
    """Raises RefusedForSafety if the table is a mirror."""
    told = mirrored(state)
    if told is not None:
        raise RefusedForSafety(told, hint=f"nothing was changed; {way_out(state)}")
