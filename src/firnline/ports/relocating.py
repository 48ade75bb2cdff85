"""Rewriting the files of a table that name other files, so that they name them where a tier has them."""

from __future__ import annotations

from collections.abc import Set
from typing import Protocol, runtime_checkable

from firnline.model.files import FileKind
from firnline.model.removals import Removal
from firnline.model.snapshots import SnapshotId
from firnline.ports.formats import Edited, State
from firnline.ports.stores import Head


class Place(Protocol):
    """Says where a tier has the files of a live table. Picklable."""

    def place(self, path: str) -> str:
        """Returns the location of the file in the tier. Raises UnsupportedFormat for a path that no tier takes."""
        ...

    def bounds(self, lower: str, upper: str) -> tuple[str, str]:
        """Returns bounds of paths as bounds of their places. Raises UnsupportedFormat where their order may change."""
        ...


class Relocate(Protocol):
    """How a format's files are handed to another place. Picklable, because executors do it."""

    @property
    def order(self) -> tuple[tuple[FileKind, ...], ...]:
        """All kinds that snapshots are made of, in groups: a file goes after all that it names, so that whatever is
        there is complete.
        """
        ...

    @property
    def rewritten(self) -> frozenset[FileKind]:
        """The kinds that name other files; all others are copied byte for byte."""
        ...

    @property
    def leaves(self) -> frozenset[FileKind]:
        """The kinds that a walk does not open: whatever they name lies beside them."""
        ...

    def relocated(self, kind: FileKind, key: str, data: bytes) -> bytes:
        """Returns the file as the other place has it: equal bytes for equal bytes, whatever process makes them.

        All that it names must lie there already. Raises UnreadableMetadata where the file is damaged, UnsupportedFormat
        where it cannot be rewritten, and ObjectNotFound where something that it names is missing there.
        """
        ...

    def same(self, kind: FileKind, one: bytes, other: bytes) -> bool:
        """Tells whether two rewritten files say the same, however they are compressed; not if either is damaged."""
        ...


@runtime_checkable
class HandsOver(Protocol):
    """A format whose snapshots can be handed to a tier, where they are a table of their own."""

    def relocation(self, place: Place, target: Head) -> Relocate:
        """Returns how the format's files are handed over; `target` is the tier's store."""
        ...

    def handed_over(
        self, state: State, snapshots: Set[SnapshotId], tags: Set[str], place: Place, into: State | None, now_ms: int
    ) -> Edited:
        """Returns the next metadata of the tier's table: what it has (`into`; None: nothing as yet), and these
        snapshots of the live table, with their ids, times, summaries and definitions. Refs of the live table that are
        named in `tags` become tags of it.

        Nothing that the tier's table has is changed or taken out. Raises RefusedForSafety where an id of a definition
        means something else there.
        """
        ...

    def returning(self, there: State, snapshot: SnapshotId, place: Place) -> Removal:
        """Returns a snapshot of a tier's table as what a live table can take back: itself, its statistics and all that
        it was written with, by the paths that the files have there.
        """
        ...
