"""What firnline must know of a table format beyond one table: how its tables are found, opened and committed to.

A kit is all of that in one value; `firnline.formats.registry` finds the kits. What only some formats have are protocols
of their own, which the composition root asks for by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from firnline.model.snapshots import SnapshotId
from firnline.ports.catalogs import Commit, TableName
from firnline.ports.formats import State, TableFormat, UndoWindow
from firnline.ports.stores import Get, Read, ReadWrite

if TYPE_CHECKING:
    from firnline.ports.inspect import Inspect, Rows, SparkSource
    from firnline.ports.retire import Retire

GROUP = "firnline.formats"
"""Entry points of this group are the kits of other packages, each named like its format."""

ListFolders = Callable[[str], Iterable[str]]
"""Returns the folders that are directly in one: a listing of everything would name every data file."""


class FolderTables(Protocol):
    """Tables that are known by their folder: the file system is their catalog."""

    @property
    def undo(self) -> UndoWindow: ...

    def locate(self, table: TableName) -> str:
        """Returns the location of the current metadata of the table in this folder. Raises NoSuchTable."""
        ...

    def passed(self, table: TableName, current: str) -> Iterable[str]:
        """Returns what else readers open before they come to the current metadata: these are needed too."""
        ...


class Kit(Protocol):
    """All that firnline must know of one format. Small: what is heavy is imported when it is asked for."""

    @property
    def name(self) -> str:
        """What the format is called in plans and by catalogs."""
        ...

    @property
    def documents(self) -> tuple[str, ...]:
        """Expressions for the ends of names that metadata objects have, by which a table is noticed in a listing."""
        ...

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders inside a table's own in which a run deletes: a probe tries whether that is allowed."""
        ...

    @property
    def known_by_folder(self) -> bool:
        """Whether a table is there as long as its folder is, whatever catalogs say: it never counts as dropped."""
        ...

    def has_table(self, store: Read, location: str) -> bool:
        """Tells whether a table of this format is in this folder."""
        ...

    def table_folder(self, document: str) -> str:
        """Returns the folder of the table that a metadata object belongs to, by its name alone."""
        ...

    def format(self, store: Read, trusted: frozenset[SnapshotId] = frozenset()) -> TableFormat:
        """Returns the format on a store. The operator vouches for the metadata of `trusted` snapshots."""
        ...

    def folder_tables(self, store: Read) -> FolderTables: ...

    def inspect(self, store: Get) -> Inspect:
        """Returns what shows a table's own metadata as rows."""
        ...


@runtime_checkable
class Committing(Protocol):
    """Tables in a folder that can be committed to by writing objects."""

    def commits(self, store: ReadWrite, location: str) -> Commit: ...


@runtime_checkable
class Retiring(Protocol):
    """Tables in a folder whose commits take metadata out of it. No other kit is ever handed the port that does."""

    def retiring_commits(self, store: ReadWrite, retire: Retire, location: str) -> Commit: ...


@runtime_checkable
class CommittingByLibrary(Protocol):
    """Tables in a folder that only the format's own library commits to: it reaches the store by itself."""

    def library_commits(self, store: ReadWrite, settings: Mapping[str, str], location: str) -> Commit:
        """Returns the write side; `settings` are those of the table's store."""
        ...


@runtime_checkable
class Mirroring(Protocol):
    """Writers that also keep metadata of another format over their own files, for other readers."""

    def mirrors(self, store: Read, location: str) -> Iterator[str]:
        """Yields every metadata object of another format that the writers of a table may keep."""
        ...

    def is_original(self, store: Read, location: str, metadata: Iterable[str]) -> bool:
        """Tells whether a table of this format lies in the folder, and its writers wrote these metadata objects, which
        are another format's.
        """
        ...


@runtime_checkable
class Warehouses(Protocol):
    """Tables that no catalog lists, in the folders of a warehouse."""

    def below(self, store: Read, warehouse: str, folders: ListFolders) -> Iterator[str]:
        """Yields the locations of the tables of a warehouse."""
        ...

    def around(self, store: Read, location: str, folders: ListFolders) -> Iterator[str]:
        """Yields the locations of the tables of the warehouse that a table is in, its own too."""
        ...

    def written(self, store: Read, location: str) -> Sequence[str]:
        """Returns the folders that the table at a location writes to, its own first; none where there is no table."""
        ...


@runtime_checkable
class KnownAround(Protocol):
    """Tables that no catalog lists, known by where a data file lies: another table may have taken that in."""

    def table_around(self, store: Read, folder: str) -> str | None:
        """Returns the innermost table of this format whose data files lie in that folder; None if there is none.

        Most folders are told by their names alone, without a request.
        """
        ...


@runtime_checkable
class ReadsRows(Protocol):
    """A format whose rows can be read without an engine of its own."""

    def rows(self, state: State, settings: Mapping[str, str], version: str | None) -> Rows:
        """Returns the rows of the table as it is, or of a version: a branch as it is, a tag or a snapshot with the
        columns that it had. `settings` are those of the table's store.
        """
        ...


@runtime_checkable
class HasSparkSource(Protocol):
    """A format that Spark reads itself, where a jar of the format is there."""

    @property
    def runtime(self) -> str:
        """What the names of that jar begin with."""
        ...

    def spark_source(self, state: State, version: str | None) -> SparkSource:
        """Returns how Spark reads the same rows."""
        ...
