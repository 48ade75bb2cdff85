"""A relation: what a data source reads, cut into pieces that any executor can turn into Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from firnline.sql.bounds import Bounds

Piece = Any
"""What one task reads: small and picklable; only its own relation looks inside."""


class Relation(Protocol):
    """Rows of one kind. Picklable: it travels to executors with the means to read its pieces."""

    @property
    def schema(self) -> pa.Schema: ...

    def pieces(self, bounds: Bounds) -> Sequence[Piece]:
        """Returns the pieces that may hold rows within the bounds; others are not even opened."""
        ...

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a piece, with these columns in this order."""
        ...


@dataclass(frozen=True, slots=True)
class Ready:
    """Rows that were read while planning, because there are few."""

    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def pieces(self, bounds: Bounds) -> Sequence[Piece]:
        return [None]

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from self.table.select(list(columns)).to_batches()
