"""Icechunk repositories known by their folder: the file system is the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from firnline.catalogs.paths import PathTables
from firnline.errors import NoSuchTable
from firnline.ports.catalogs import TableName
from firnline.ports.formats import UndoWindow
from firnline.ports.stores import Read


class IcechunkFolders(PathTables):
    """The read side: path tables that are found by another sign, which `has_table` knows."""

    def __init__(self, store: Read, has_table: Callable[[Read, str], bool]) -> None:
        super().__init__(store)
        self._has_table = has_table

    @property
    def format(self) -> str:
        return "icechunk"

    @property
    def undo(self) -> UndoWindow:
        return UndoWindow.BEFORE_COMMIT

    def passed(self, table: TableName, current: str) -> Iterator[str]:
        """Yields nothing: the folder itself is the version that readers open."""
        return iter(())

    def locate(self, table: TableName) -> str:
        if not self._has_table(self._store, table.name):
            raise NoSuchTable(f"no Icechunk repository at {table.name}", "it has an object `repo`, or branches")
        return table.name
