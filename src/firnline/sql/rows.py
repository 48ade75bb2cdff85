"""A table's own rows, where its format reads them without an engine of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from firnline.ports.inspect import Rows
from firnline.sql.relations import Piece, TimeBounds


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of one snapshot. Their format tells no bounds of its tasks: every one is read."""

    rows: Rows

    @property
    def schema(self) -> pa.Schema:
        return self.rows.schema

    def pieces(self, bounds: TimeBounds) -> Sequence[Piece]:
        return self.rows.tasks()

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self.rows.read(piece, columns)
