"""Finding tables, and moving a table from one version of its metadata to the next; one table
wherever it is registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from firnline.model.names import written
from firnline.ports.formats import Amendment, State, TableFormat, UndoWindow

HOW_TO_CONFIGURE = "catalogs come from PyIceberg's configuration: .pyiceberg.yaml or PYICEBERG_CATALOG__NAME__URI"


@dataclass(frozen=True, slots=True)
class TableName:
    """A table as its catalog knows it; the namespace may have several levels, or none. It travels as this value.

    A table without a catalog is named by its location. The text is for people and for records: `Catalogs.name_of` reads
    the same name from it, whatever characters its parts hold.
    """

    catalog: str
    namespace: tuple[str, ...]
    name: str

    def __str__(self) -> str:
        return written((self.catalog, *(self.namespace or ("",)), self.name)) if self.catalog else self.name

    @staticmethod
    def at(location: str) -> TableName:
        """Returns the name of a table that no catalog has."""
        return TableName("", (), location)

    @staticmethod
    def of_parts(catalog: str, parts: Sequence[str]) -> TableName:
        """Returns the table of a catalog; its name is the last part. A single empty level is none."""
        levels = tuple(parts[:-1])
        return TableName(catalog, () if levels == ("",) else levels, parts[-1])


class Catalog(Protocol):
    """The read side of a catalog."""

    @property
    def name(self) -> str: ...

    @property
    def format(self) -> str:
        """The name of the format that its tables have."""
        ...

    @property
    def undo(self) -> UndoWindow:
        """Until when a change made through this catalog can be taken back."""
        ...

    def tables(self) -> Iterator[TableName]:
        """Yields every table of the catalog, sorted by name."""
        ...

    def pointers(self) -> Iterator[tuple[TableName, str | None]]:
        """Yields every table of the catalog with the location of its current metadata; None for all of them where one
        request does not tell.
        """
        ...

    def locate(self, table: TableName) -> str:
        """Returns the location of the table's current metadata object.

        Raises NoSuchTable, with near names; UnreadableMetadata where the catalog still lists the table: that one was
        not dropped, and what it needs is not known.
        """
        ...

    def vended(self, table: TableName) -> Mapping[str, str]:
        """Returns the store settings that the catalog hands out for this table; empty where it hands out none.

        They may hold credentials that end soon: ask again rather than keep them.
        """
        ...


@runtime_checkable
class WatchedInOneQuery(Protocol):
    """A catalog that can be looked at again and again at the price of one query."""

    def watched(self) -> Callable[[], Sequence[tuple[TableName, str | None]]]:
        """Returns what yields the same as `pointers`, each time in one query. How the database names things is asked
        here and not again: whatever decides what is needed asks `pointers`.
        """
        ...


@runtime_checkable
class PlacesTables(Protocol):
    """A catalog that takes tables whose metadata is written already: those of a tier."""

    def place_table(self, table: TableName, expected: str | None, metadata: str) -> SwapOutcome:
        """Makes this metadata the table's, where it still stands at `expected`; None: where there is no such table.
        Namespaces that are missing are made, and so is the catalog itself in an empty database.

        LOST: the table stands elsewhere, or is there already. UNKNOWN: no answer came; read back, never guess. Sending
        the very same again is safe.
        """
        ...


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a table's metadata: where it lies and what it says."""

    location: str
    document: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Step:
    """From one version to the next, as the format made it. `suggested` is a name that was never used before."""

    base: Version
    document: Mapping[str, Any] = field(repr=False)
    data: bytes = field(repr=False)
    suggested: str


Still = Callable[[], None]
"""Asked before a request is sent; raises if the sender may not any more."""


def always() -> None:
    """Lets every request go: a commit that no lease stands behind, a read that no window ends."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One commit, ready to be sent.

    `proof` is JSON for the run's record, written before anything is sent: all that another process needs to tell
    whether the commit landed. `base` is in it, and `location`, None where a server will choose it. `still` is asked
    before each request of a commit that takes several, and raises if the sender may not any more.
    """

    table: TableName
    step: Step
    proof: Mapping[str, Any]
    still: Still = always


class SwapOutcome(StrEnum):
    DONE = "done"
    LOST = "lost"
    UNKNOWN = "unknown"


class Commit(Protocol):
    """The write side: a table goes from its current version to the next, or stays as it is."""

    def prepare(self, table: TableName, step: Step) -> Attempt:
        """Returns the commit as it would be sent. Sends nothing; raises where the step cannot be committed here."""
        ...

    def commit(self, attempt: Attempt) -> SwapOutcome:
        """Takes the step if the table still stands where it began.

        LOST: it did not, and nothing changed. UNKNOWN: no answer came; read back, never guess. Sending the very same
        attempt again is safe: it changes the table at most once.
        """
        ...

    def landed(self, proof: Mapping[str, Any], now: Version, still: Still = always) -> bool:
        """Tells whether the table, as it is now, shows that this attempt landed.

        A commit that takes several requests is carried to its end first; `still` is asked before each of them.
        """
        ...

    def fence(self, proofs: Sequence[Mapping[str, Any]], now: Version) -> Amendment | None:
        """Returns what has to be written so that none of these attempts can land any more; None: none can."""
        ...


@runtime_checkable
class StepwiseCommit(Protocol):
    """A commit that takes several requests and can be cut between two: it notes how far it came, and the record of its
    attempt says all that is still to be written and taken away.
    """

    @property
    def notes(self) -> str:
        """The folder with the notes of this table's commits."""
        ...


@runtime_checkable
class CommitByLibrary(Protocol):
    """A commit that only the format's own library makes."""

    def refuse_without_library(self, state: State) -> None:
        """Raises UnsupportedFormat where the library is missing, or too old for the table. Asked before a run is
        written down: it would wait for its commit, and only that would fail.
        """
        ...


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
