"""Finding tables, and moving a table's pointer from one metadata object to the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class TableName:
    """`catalog.namespace.name`; the namespace may have several levels, joined by dots."""

    catalog: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return ".".join(part for part in (self.catalog, self.namespace, self.name) if part)


class Catalog(Protocol):
    """The read side of a catalog."""

    @property
    def name(self) -> str: ...

    def tables(self) -> Iterator[TableName]:
        """Yields every table of the catalog, sorted by name."""
        ...

    def locate(self, table: TableName) -> str:
        """Returns the location of the table's current metadata object. Raises NoSuchTable, with near names."""
        ...


class SwapOutcome(StrEnum):
    DONE = "done"
    LOST = "lost"
    UNKNOWN = "unknown"


class Commit(Protocol):
    """The write side: one compare-and-swap from a table's current metadata to the next."""

    def successor(self, table: TableName, base: str, suggested: str) -> str:
        """Returns where the metadata after `base` is going to lie; known before the commit, so it can be recorded."""
        ...

    def commit(self, table: TableName, base: str, new: str, data: bytes) -> SwapOutcome:
        """Makes `data` at `new` the table's metadata if it still is the one at `base`.

        LOST: it was not, and nothing changed. UNKNOWN: no answer came; read back, never guess. Sending the very same
        commit again is safe: it succeeds at most once.
        """
        ...
