"""`entries` and `files` of a snapshot: its manifests are the pieces, opened on executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from firnline.ports.inspect import EntryReader, Manifest
from firnline.sql.relations import Piece, TimeBounds

STATUS, FILE = "status", "data_file"
_DELETED = 2
_PIECE_BYTES = 1 << 20


def grouped(manifests: Sequence[Manifest]) -> list[tuple[Manifest, ...]]:
    """Returns the manifests in groups of about equal bytes: a task for each small one would cost more than it does."""
    groups: list[list[Manifest]] = []
    filled = _PIECE_BYTES
    for each in manifests:
        if filled >= _PIECE_BYTES:
            groups.append([])
            filled = 0
        groups[-1].append(each)
        filled += each.size
    return [tuple(group) for group in groups]


@dataclass(frozen=True, slots=True)
class EntryRows:
    """The entries of the manifests, also those that say 'deleted'. `parts` are those of the file that are wanted; all
    if None.
    """

    entries: EntryReader
    manifests: tuple[Manifest, ...]
    parts: tuple[str, ...] | None = None

    @property
    def schema(self) -> pa.Schema:
        whole = self.entries.schema
        if self.parts is None:
            return whole
        kind = whole.field(FILE).type
        narrow = pa.struct([each for each in kind if each.name in self.parts])
        return whole.set(whole.get_field_index(FILE), pa.field(FILE, narrow))

    @property
    def known_parts(self) -> list[str]:
        return [each.name for each in self.entries.schema.field(FILE).type]

    def narrowed(self, parts: Sequence[str]) -> EntryRows:
        """Returns the same with these parts of the file alone; with all of it if there are none."""
        return replace(self, parts=tuple(parts) or None)

    def pieces(self, bounds: TimeBounds) -> Sequence[Piece]:
        return grouped(self.manifests)

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for manifest in piece:
            found = self.entries(manifest, self._wanted(columns))
            yield pa.record_batch([self._column(found, name) for name in columns], names=list(columns))

    def _wanted(self, columns: Sequence[str]) -> frozenset[str]:
        if self.parts is None or FILE not in columns:
            return frozenset(columns)
        return frozenset(columns) - {FILE} | {f"{FILE}.{part}" for part in self.parts}

    def _column(self, found: pa.RecordBatch, name: str) -> pa.Array:
        """Returns a column; of the file only the parts that the schema has."""
        column = found.column(name)
        if name != FILE or self.parts is None:
            return column
        names = [each.name for each in self.schema.field(FILE).type]
        return pa.StructArray.from_arrays([column.field(each) for each in names], names=names)


@dataclass(frozen=True, slots=True)
class FileRows:
    """The files that are live in the manifests: data and deletes, each with what is told beside it in its entry."""

    entries: EntryReader
    manifests: tuple[Manifest, ...]

    @property
    def schema(self) -> pa.Schema:
        whole = self.entries.schema
        beside = [each for each in whole if whole.get_field_index(each.name) > whole.get_field_index(FILE)]
        return pa.schema([*whole.field(FILE).type, *beside])

    def pieces(self, bounds: TimeBounds) -> Sequence[Piece]:
        return grouped(self.manifests)

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for manifest in piece:
            found = live_entries(self.entries, manifest, [self._path(name) for name in columns])
            yield pa.record_batch([self._column(found, name) for name in columns], names=list(columns))

    def _path(self, name: str) -> str:
        """Returns the path within an entry of what a column of `files` shows."""
        return name if name in self.entries.schema.names else f"{FILE}.{name}"

    def _column(self, found: pa.RecordBatch, name: str) -> pa.Array:
        return found.column(name) if name in self.entries.schema.names else found.column(FILE).field(name)


def live_entries(entries: EntryReader, manifest: Manifest, wanted: Sequence[str]) -> pa.RecordBatch:
    """Returns the entries of a manifest that do not say 'deleted', with at least these columns and parts of files."""
    found = entries(manifest, {STATUS, *wanted})
    return found.filter(pc.not_equal(found.column(STATUS), _DELETED))
