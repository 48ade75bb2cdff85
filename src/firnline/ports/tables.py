"""One table, wherever it is registered: what a use case works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from firnline.ports.catalogs import Commit, TableName
from firnline.ports.formats import State, TableFormat


class TableSource(Protocol):
    """A table that can be read again at any moment, because every decision is checked against a fresh read."""

    @property
    def name(self) -> TableName: ...

    @property
    def format(self) -> TableFormat: ...

    def load(self) -> State:
        """Returns the table as it is now. Raises NoSuchTable where it is gone."""
        ...

    @property
    def passed(self) -> Callable[[str], Iterable[str]]:
        """Returns, for the current metadata, what else readers open before they come to it: these are needed too."""
        ...


class WritableTable(TableSource, Protocol):
    """A table whose metadata can be moved on."""

    @property
    def commits(self) -> Commit: ...
