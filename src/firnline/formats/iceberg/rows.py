"""A table's own rows without any jar: PyIceberg plans the scan, executors read its tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.schema import Schema
from pyiceberg.table import DataScan, FileScanTask, StaticTable

from firnline.errors import UnsupportedFormat
from firnline.formats.iceberg.runtime import JAR
from firnline.ports.inspect import Task

_TASK_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class IcebergRows:
    """The rows of one snapshot of one version of a table; `as_table`: with the table's columns, not the snapshot's."""

    version: str
    settings: Mapping[str, str] = field(repr=False)
    snapshot: int | None
    as_table: bool

    @property
    def schema(self) -> pa.Schema:
        return self._columns(self._scan()).as_arrow()

    def tasks(self) -> Sequence[Task]:
        """Returns groups of scan tasks of about equal bytes."""
        groups: list[list[FileScanTask]] = []
        filled = _TASK_BYTES
        for task in self._tasks():
            if filled >= _TASK_BYTES:
                groups.append([])
                filled = 0
            groups[-1].append(task)
            filled += task.file.file_size_in_bytes
        return groups

    def read(self, task: Task, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        scan = self._scan()
        reading = ArrowScan(scan.table_metadata, scan.io, self._columns(scan).select(*columns), AlwaysTrue())
        return (batch.select(list(columns)) for batch in reading.to_record_batches(task))

    def _tasks(self) -> list[FileScanTask]:
        try:
            return list(self._scan().plan_files())
        except (ValueError, NotImplementedError) as problem:
            if "equality deletes" not in str(problem):
                raise
            raise UnsupportedFormat("PyIceberg does not read a table with equality deletes", hint=JAR) from problem

    def _columns(self, scan: DataScan) -> Schema:
        return scan.table_metadata.schema() if self.as_table else scan.projection()

    def _scan(self) -> DataScan:
        return StaticTable.from_metadata(self.version, dict(self.settings)).scan(snapshot_id=self.snapshot)
