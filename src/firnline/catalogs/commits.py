"""Committing through a SQL catalog: the new metadata is written first, then one row is moved to it."""

from __future__ import annotations

from firnline.catalogs.sql import SqlCatalog
from firnline.errors import AlreadyExists
from firnline.ports.catalogs import SwapOutcome, TableName
from firnline.ports.stores import ReadWrite


class SqlCommits:
    """The write side of a SQL catalog.

    A metadata object that a lost race leaves behind is named by nothing: it is garbage from the start, and whoever
    suggested its name may discard it.
    """

    def __init__(self, catalog: SqlCatalog, store: ReadWrite) -> None:
        self._catalog = catalog
        self._store = store

    def successor(self, table: TableName, base: str, suggested: str) -> str:
        """Returns the suggestion as it is: any name will do that was never used before."""
        return suggested

    def commit(self, table: TableName, base: str, new: str, data: bytes) -> SwapOutcome:
        """Writes the data and moves the row. Raises AlreadyExists where `new` holds other data already."""
        if self._catalog.locate(table) != base:
            return SwapOutcome.LOST
        self._write(new, data)
        return self._catalog.swap(table, base, new)

    def _write(self, new: str, data: bytes) -> None:
        try:
            self._store.put_if_absent(new, data)
        except AlreadyExists:
            if self._store.get(new) != data:  # equal: the same commit is being sent again
                raise
