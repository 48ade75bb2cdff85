"""Iceberg's own metadata tables: the log, manifests and entries, with the columns that Iceberg gives them.

Statistics of columns are left out: they are most of a manifest's bytes, and the shared decoder skips them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.formats.avro import decode
from firnline.formats.iceberg import fields
from firnline.formats.iceberg.counts import count_of, refuse_cut
from firnline.formats.iceberg.expand import roots_of
from firnline.formats.iceberg.partitions import Names, PartitionField, names_by_spec, partition_fields
from firnline.formats.opening import opened
from firnline.model.files import File, FileKind
from firnline.model.snapshots import SnapshotId
from firnline.ports.formats import State
from firnline.ports.inspect import Manifest
from firnline.ports.stores import Get

_COUNTS = ("added", "existing", "deleted")
_NUMBERS = ("manifest_length", "partition_spec_id", "content", "sequence_number", "added_snapshot_id")
_LIST_COLUMNS = {
    "manifest_path": pa.string(),
    **dict.fromkeys(_NUMBERS, pa.int64()),
    **{f"{each}_files_count": pa.int64() for each in _COUNTS},
    **{f"{each}_data_files_count": pa.int64() for each in _COUNTS},
}
_SHORT = pa.int32()
MANIFESTS = pa.schema(
    [
        ("content", _SHORT),
        ("path", pa.string()),
        ("length", pa.int64()),
        ("partition_spec_id", _SHORT),
        ("added_snapshot_id", pa.int64()),
        *((f"{each}_data_files_count", _SHORT) for each in _COUNTS),
        *((f"{each}_delete_files_count", _SHORT) for each in _COUNTS),
        ("sequence_number", pa.int64()),
    ]
)
_OF_FILE = {
    "content": _SHORT, "file_path": pa.string(), "file_format": pa.string(), "spec_id": _SHORT,
    "record_count": pa.int64(), "file_size_in_bytes": pa.int64(), "sort_order_id": _SHORT,
    "referenced_data_file": pa.string(), "content_offset": pa.int64(), "content_size_in_bytes": pa.int64(),
    "first_row_id": pa.int64(),
}  # fmt: skip
_ADDED = 1
_STATUSES = {"existing": 0, "added": _ADDED, "deleted": 2}
_OF_ENTRY = ("status", "snapshot_id", "sequence_number", "file_sequence_number")


@dataclass(frozen=True, slots=True)
class IcebergTables:
    """Reads a table's metadata tables through a store."""

    store: Get

    def log(self, state: State) -> Iterator[tuple[int, SnapshotId]]:
        for each in fields.objects(state.document, "snapshot-log", state.fence):
            yield (
                fields.whole(each, "timestamp-ms", state.fence),
                str(fields.whole(each, "snapshot-id", state.fence)),
            )

    def manifests(self, state: State, snapshot: SnapshotId | None) -> pa.Table:
        units = [unit for owner, unit in roots_of(state) if owner == snapshot]
        lists = [unit for unit in units if unit.kind is FileKind.MANIFEST_LIST]
        named = [unit for unit in units if unit.kind is FileKind.MANIFEST]
        rows = [self._named(unit, str(snapshot)) for unit in named]
        inline = pa.Table.from_pylist(rows, schema=MANIFESTS)
        return pa.concat_tables([inline, *(self._listed(unit) for unit in lists)])

    def units(self, state: State, snapshot: SnapshotId | None) -> list[Manifest]:
        columns = ("path", "length", "partition_spec_id", "added_snapshot_id", "sequence_number")
        rows = self.manifests(state, snapshot).select(columns).to_pylist()
        return [Manifest(*(row[name] for name in columns)) for row in rows]

    def entries(self, state: State) -> IcebergEntries:
        return IcebergEntries(self.store, partition_fields(state), names_by_spec(state))

    def live(self, state: State, snapshot: SnapshotId | None) -> IcebergEntries:
        """Returns the same reader: no manifest of a snapshot lists what another one removes."""
        return self.entries(state)

    def _listed(self, unit: File) -> pa.Table:
        with opened(self.store, unit) as data:
            listed = decode(data, _LIST_COLUMNS).batch
            refuse_cut(listed, np.zeros(len(listed), dtype=np.int64), [unit.expects], [data])
        return pa.Table.from_batches([_manifest_rows(listed)])

    def _named(self, unit: File, snapshot: SnapshotId) -> dict[str, Any]:
        """Returns the row of a manifest that a snapshot of version 1 names without a list, which would say all this."""
        with opened(self.store, unit) as data:
            found = decode(data, {"status": pa.int64()})
        status = pc.fill_null(found.batch.column("status"), _ADDED).to_pylist()
        return {
            "content": 0,
            "path": unit.key,
            "length": len(data),
            "partition_spec_id": int(found.metadata.get("partition-spec-id", b"0")),
            "added_snapshot_id": int(snapshot),
            **{f"{each}_data_files_count": status.count(number) for each, number in _STATUSES.items()},
            **{f"{each}_delete_files_count": 0 for each in _COUNTS},
            "sequence_number": 0,
        }


def _manifest_rows(listed: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the rows of `manifests`. A list has one set of counts; the content says whether of data or deletes."""
    content = pc.fill_null(listed.column("content"), 0)
    counts = {each: count_of(listed, each) for each in _COUNTS}
    zero = pa.repeat(pa.scalar(0, pa.int64()), len(listed))
    is_data = pc.equal(content, 0)
    columns = {
        "content": content,
        "path": listed.column("manifest_path"),
        "length": listed.column("manifest_length"),
        "partition_spec_id": pc.fill_null(listed.column("partition_spec_id"), 0),
        "added_snapshot_id": listed.column("added_snapshot_id"),
        **{f"{each}_data_files_count": pc.if_else(is_data, counts[each], zero) for each in _COUNTS},
        **{f"{each}_delete_files_count": pc.if_else(is_data, zero, counts[each]) for each in _COUNTS},
        "sequence_number": pc.fill_null(listed.column("sequence_number"), 0),
    }
    return pa.record_batch([columns[field.name].cast(field.type) for field in MANIFESTS], schema=MANIFESTS)


@dataclass(frozen=True, slots=True)
class IcebergEntries:
    """Reads the entries of manifests; `names` are what manifests of each spec call the partition's fields."""

    store: Get
    partition: tuple[PartitionField, ...]
    names: Mapping[int, Names]

    @property
    def schema(self) -> pa.Schema:
        whole = [(name, _SHORT if name == "status" else pa.int64()) for name in _OF_ENTRY]
        return pa.schema([*whole, ("data_file", pa.struct(self._file_fields()))])

    def __call__(self, manifest: Manifest) -> pa.RecordBatch:
        unit = File(FileKind.MANIFEST, manifest.key, manifest.size, opens=True)
        with opened(self.store, unit) as data:
            found = decode(data, self._wanted(manifest)).batch
        status = pc.fill_null(found.column("status"), _ADDED)
        columns = [status.cast(_SHORT), *_inherited(found, status, manifest), self._files(found, manifest)]
        return pa.record_batch(columns, schema=self.schema)

    def _file_fields(self) -> list[tuple[str, pa.DataType]]:
        """Returns the fields of a file. An unpartitioned table has no `partition`: engines know no empty struct."""
        named = list(_OF_FILE.items())
        if self.partition:
            named.insert(4, ("partition", pa.struct([(each.name, each.shown_as) for each in self.partition])))
        return named

    def _wanted(self, manifest: Manifest) -> dict[str, pa.DataType]:
        of_file = {name: kind for name, kind in _OF_FILE.items() if name != "spec_id"}
        wide = {f"data_file.{name}": pa.int64() if kind == _SHORT else kind for name, kind in of_file.items()}
        names = self.names.get(manifest.spec, {})
        fields_of = {f"data_file.partition.{names[f.id]}": f.read_as for f in self.partition if f.id in names}
        return {**dict.fromkeys(_OF_ENTRY, pa.int64()), **wide, **fields_of}

    def _files(self, found: pa.RecordBatch, manifest: Manifest) -> pa.Array:
        columns: list[pa.Array] = []
        for name, kind in self._file_fields():
            if name == "partition":
                columns.append(self._partitions(found, manifest))
            elif name == "spec_id":
                columns.append(pa.repeat(pa.scalar(manifest.spec, kind), len(found)))
            else:
                column = found.column(f"data_file.{name}")
                columns.append((pc.fill_null(column, 0) if name == "content" else column).cast(kind))
        return pa.StructArray.from_arrays(columns, names=[name for name, _ in self._file_fields()])

    def _partitions(self, found: pa.RecordBatch, manifest: Manifest) -> pa.Array:
        """Returns the partition of each file; fields that its spec does not have are null."""
        names = self.names.get(manifest.spec, {})
        columns = [
            each.shown(found.column(f"data_file.partition.{names[each.id]}"))
            if each.id in names
            else pa.nulls(len(found), each.shown_as)
            for each in self.partition
        ]
        return pa.StructArray.from_arrays(columns, names=[each.name for each in self.partition])


def _inherited(found: pa.RecordBatch, status: pa.Array, manifest: Manifest) -> list[pa.Array]:
    """Returns snapshot and sequence numbers; what an entry leaves out is its manifest's, a number only if it added.

    Manifests of version 1 have no numbers at all: all of them are 0.
    """
    snapshot = pa.scalar(manifest.snapshot, pa.int64())
    inherits = pc.or_(pc.equal(status, _ADDED), pa.scalar(manifest.sequence == 0))
    number = pc.if_else(inherits, pa.scalar(manifest.sequence, pa.int64()), pa.scalar(None, pa.int64()))
    return [
        pc.coalesce(found.column("snapshot_id"), snapshot),
        pc.coalesce(found.column("sequence_number"), number),
        pc.coalesce(found.column("file_sequence_number"), number),
    ]
