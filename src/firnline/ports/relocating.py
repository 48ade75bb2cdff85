"""Rewriting the files of a table that name other files, so that they name them where a tier has them."""

from __future__ import annotations

from typing import Protocol

from firnline.model.files import FileKind


class Place(Protocol):
    """Says where a tier has the files of a live table. Picklable."""

    def place(self, path: str) -> str:
        """Returns where the file lies. Raises UnsupportedFormat for a path that no tier takes."""
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

    def relocated(self, kind: FileKind, key: str, data: bytes) -> bytes:
        """Returns the file as the other place has it: equal bytes for equal bytes, whatever process makes them.

        All that it names must lie there already. Raises UnreadableMetadata where the file is damaged, UnsupportedFormat
        where it cannot be rewritten, and ObjectNotFound where something that it names is missing there.
        """
        ...
