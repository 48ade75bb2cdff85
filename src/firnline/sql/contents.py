"""`entries` and `files` of a snapshot: its manifests are the pieces, opened on executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from firnline.ports.inspect import EntryReader, Manifest
from firnline.sql.relations import Piece, TimeBounds

_DELETED = 2
_FILE = "data_file"
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
    """The entries of the manifests, also those that say 'deleted'."""

    entries: EntryReader
    manifests: tuple[Manifest, ...]

    @property
    def schema(self) -> pa.Schema:
        return self.entries.schema

    def pieces(self, bounds: TimeBounds) -> Sequence[Piece]:
        return grouped(self.manifests)

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for manifest in piece:
            yield self.entries(manifest).select(list(columns))


@dataclass(frozen=True, slots=True)
class FileRows:
    """The files that are live in the manifests: data and deletes."""

    entries: EntryReader
    manifests: tuple[Manifest, ...]

    @property
    def schema(self) -> pa.Schema:
        kind = self.entries.schema.field(_FILE).type
        return pa.schema([kind.field(place) for place in range(kind.num_fields)])

    def pieces(self, bounds: TimeBounds) -> Sequence[Piece]:
        return grouped(self.manifests)

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for manifest in piece:
            entries = self.entries(manifest)
            live = entries.filter(pc.not_equal(entries.column("status"), _DELETED)).column(_FILE)
            yield pa.record_batch([live.field(name) for name in columns], names=list(columns))
