"""A table's own rows through Paimon's own reader for Python, where that is installed: it plans, executors read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firnline.errors import UnsupportedFormat
from firnline.formats.paimon.names import branch_of_id
from firnline.model.snapshots import number_of
from firnline.ports.formats import State
from firnline.ports.inspect import Task

if TYPE_CHECKING:
    import pyarrow as pa

_READERS = (
    "Paimon's own readers do: install pypaimon, or name Paimon's runtime for your Spark in FIRNLINE_SPARK_PACKAGES "
    "(org.apache.paimon:paimon-spark-…)"
)
_TASK_FILES = 64


def selection_of(state: State, version: str | None) -> dict[str, str]:
    """Returns the options by which Paimon's readers find a snapshot: its branch, and its number, or a tag if only a tag
    holds it. The table as it is means its current snapshot: no file of Paimon's names one version of a whole table.
    """
    snapshot = state.current if version is None else state.named(version)
    if snapshot is None:
        return {}
    branch = branch_of_id(snapshot)
    own = {"branch": branch} if branch else {}
    if state.graph.by_id[snapshot].number is not None:
        return {**own, "scan.snapshot-id": str(number_of(snapshot))}
    tag = next(ref.name for ref in state.refs.values() if ref.snapshot == snapshot)
    return {**own, "scan.tag-name": tag.removeprefix(f"{branch}:")}


@dataclass(frozen=True, slots=True)
class PaimonRows:
    """The rows of one snapshot, merged as Paimon merges them."""

    location: str
    selection: Mapping[str, str]

    @property
    def schema(self) -> pa.Schema:
        return self._table().new_read_builder().new_read().to_arrow([]).schema

    def tasks(self) -> Sequence[Task]:
        """Returns groups of splits: a bucket's files belong together, small ones are read at once."""
        groups: list[list[Any]] = []
        filled = _TASK_FILES
        for split in self._table().new_read_builder().new_scan().plan().splits():
            if filled >= _TASK_FILES:
                groups.append([])
                filled = 0
            groups[-1].append(split)
            filled += len(split.files)
        return groups

    def read(self, task: Task, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        builder = self._table().new_read_builder().with_projection(list(columns))
        return (batch.select(list(columns)) for batch in builder.new_read().to_arrow_batch_reader(task))

    def _table(self) -> Any:
        """Returns the table as pypaimon opens it, a branch with its own schema. Raises UnsupportedFormat if pypaimon is
        not installed.
        """
        try:
            from pypaimon.common.identifier import Identifier
            from pypaimon.schema.schema_manager import SchemaManager
            from pypaimon.table.file_store_table import FileStoreTable
        except ImportError as missing:
            raise UnsupportedFormat(f"rows of a paimon table are not read here: {missing}", hint=_READERS) from missing
        table, asked = FileStoreTable.from_path(self.location), dict(self.selection)
        branch = asked.pop("branch", None)
        if branch is not None:
            schema = SchemaManager(table.file_io, self.location, branch=branch).latest()
            identifier = Identifier.create("default", "table", branch=branch)
            table = FileStoreTable(table.file_io, identifier, self.location, schema)
        return table.copy(asked)
