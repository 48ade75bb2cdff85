"""A table's own rows without any jar: PyIceberg plans the scan, executors read its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import DataScan, FileScanTask, StaticTable

from firnline.errors import UnsupportedFormat
from firnline.ports.formats import State
from firnline.sql.faults import JAR
from firnline.sql.relations import Piece, TimeBounds

_PIECE_BYTES = 64 << 20


def table_rows(state: State, settings: Mapping[str, str], snapshot: str | None) -> TableRows:
    """Returns the rows of a snapshot. Raises UnsupportedFormat where only Iceberg's own runtime can read them."""
    if state.format != "iceberg":
        raise UnsupportedFormat(
            f"{state.table}: rows of a {state.format} table are not read", hint="ask its own engine"
        )
    return TableRows(state.fence, dict(settings), None if snapshot is None else int(snapshot))


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of one snapshot of one version of a table."""

    version: str
    settings: Mapping[str, str] = field(repr=False)
    snapshot: int | None

    @property
    def schema(self) -> pa.Schema:
        return self._scan().projection().as_arrow()

    def pieces(self, bounds: TimeBounds) -> Sequence[Piece]:
        """Returns groups of scan tasks of about equal bytes."""
        groups: list[list[FileScanTask]] = []
        filled = _PIECE_BYTES
        for task in self._tasks():
            if filled >= _PIECE_BYTES:
                groups.append([])
                filled = 0
            groups[-1].append(task)
            filled += task.file.file_size_in_bytes
        return groups

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        scan = self._scan(tuple(columns))
        reading = ArrowScan(scan.table_metadata, scan.io, scan.projection(), AlwaysTrue())
        return (batch.select(list(columns)) for batch in reading.to_record_batches(piece))

    def _tasks(self) -> list[FileScanTask]:
        try:
            return list(self._scan().plan_files())
        except (ValueError, NotImplementedError) as problem:
            if "equality deletes" not in str(problem):
                raise
            raise UnsupportedFormat("PyIceberg does not read a table with equality deletes", hint=JAR) from problem

    def _scan(self, columns: tuple[str, ...] = ("*",)) -> DataScan:
        table = StaticTable.from_metadata(self.version, dict(self.settings))
        return table.scan(selected_fields=columns, snapshot_id=self.snapshot)
