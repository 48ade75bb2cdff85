"""The entries of manifests as rows: what happened to each file, the file, and what is told of its columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from firnline.formats.avro import decode
from firnline.formats.iceberg.partitions import Names, PartitionField
from firnline.formats.iceberg.statistics import ARRAYS, STATISTICS, StatisticsColumn, decoded, readable_metrics
from firnline.formats.opening import opened
from firnline.model.files import File, FileKind
from firnline.ports.inspect import Manifest
from firnline.ports.stores import Get

ADDED, DELETED = 1, 2
READABLE = "readable_metrics"
_FILE, _FIRST_ROW = "data_file", "first_row_id"
_SHORT = pa.int32()
_OF_FILE: Mapping[str, pa.DataType] = {
    "content": _SHORT, "file_path": pa.string(), "file_format": pa.string(), "spec_id": _SHORT,
    "record_count": pa.int64(), "file_size_in_bytes": pa.int64(), **STATISTICS, "key_metadata": pa.binary(),
    "split_offsets": ARRAYS["split_offsets"], "equality_ids": ARRAYS["equality_ids"], "sort_order_id": _SHORT,
    "first_row_id": pa.int64(), "referenced_data_file": pa.string(), "content_offset": pa.int64(),
    "content_size_in_bytes": pa.int64(),
}  # fmt: skip
_PARTITION_PLACE = 4
_OF_ENTRY = {"status": _SHORT, **dict.fromkeys(("snapshot_id", "sequence_number", "file_sequence_number"), pa.int64())}


@dataclass(frozen=True, slots=True)
class IcebergEntries:
    """Reads the entries of manifests; `names` are what manifests of each spec call the partition's fields, `columns`
    are those of the table that have statistics.

    Statistics are most of a manifest's bytes: they are decoded only if they are wanted.
    """

    store: Get
    partition: tuple[PartitionField, ...]
    names: Mapping[int, Names]
    columns: tuple[StatisticsColumn, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """An unpartitioned table has no `partition`, one without primitive columns no readable metrics: engines know no
        empty struct.
        """
        file = pa.struct(list(self._file_fields().items()))
        metrics = [(READABLE, self._metrics_type())] if self.columns else []
        return pa.schema([*_OF_ENTRY.items(), (_FILE, file), *metrics])

    def __call__(self, manifest: Manifest, wanted: Collection[str] | None = None) -> pa.RecordBatch:
        unit = File(FileKind.MANIFEST, manifest.key, manifest.size, opens=True)
        chosen = self._chosen(wanted)
        readable = bool(self.columns) and (wanted is None or READABLE in wanted)
        with opened(self.store, unit) as data:
            found = decode(data, self._asked(_with_sources(chosen, readable), manifest)).batch
            return self._rows(found, manifest, chosen, readable)

    def _chosen(self, wanted: Collection[str] | None) -> list[str]:
        """Returns the parts of the file that are wanted; one at least, for a struct has parts."""
        whole = wanted is None or _FILE in wanted
        parts = [name for name in self._file_fields() if whole or f"{_FILE}.{name}" in (wanted or ())]
        return parts or ["content"]

    def _rows(self, found: pa.RecordBatch, manifest: Manifest, chosen: list[str], readable: bool) -> pa.RecordBatch:
        status = pc.fill_null(found.column("status"), ADDED)
        file = pa.StructArray.from_arrays([self._part(found, name, manifest) for name in chosen], names=chosen)
        columns = {"status": status.cast(_SHORT), **_inherited(found, status, manifest), _FILE: file}
        if readable:
            maps = {name: decoded(kind, found.column(f"{_FILE}.{name}")) for name, kind in STATISTICS.items()}
            columns[READABLE] = readable_metrics(self.columns, maps)
        return pa.record_batch(list(columns.values()), names=list(columns))

    def _file_fields(self) -> dict[str, pa.DataType]:
        """Returns the fields of a file, in Iceberg's order."""
        fields = list(_OF_FILE.items())
        if self.partition:
            kind = pa.struct([(each.name, each.shown_as) for each in self.partition])
            fields.insert(_PARTITION_PLACE, ("partition", kind))
        return dict(fields)

    def _metrics_type(self) -> pa.DataType:
        return pa.struct([(each.name, each.kind) for each in self.columns])

    def _asked(self, parts: Collection[str], manifest: Manifest) -> dict[str, pa.DataType]:
        """Returns the columns to decode. Arrays come as they are encoded."""
        of_file = {name: _OF_FILE[name] for name in parts if name not in ("spec_id", "partition")}
        wide = {f"{_FILE}.{name}": pa.binary() if name in ARRAYS else _wide(kind) for name, kind in of_file.items()}
        names = self.names.get(manifest.spec, {}) if "partition" in parts else {}
        fields_of = {f"{_FILE}.partition.{names[f.id]}": f.read_as for f in self.partition if f.id in names}
        return {**dict.fromkeys(_OF_ENTRY, pa.int64()), **wide, **fields_of}

    def _part(self, found: pa.RecordBatch, name: str, manifest: Manifest) -> pa.Array:
        if name == "partition":
            return self._partitions(found, manifest)
        kind = _OF_FILE[name]
        if name == "spec_id":
            return pa.repeat(pa.scalar(manifest.spec, kind), len(found))
        if name == _FIRST_ROW:
            return _first_rows(found, manifest)
        column = found.column(f"{_FILE}.{name}")
        if name in ARRAYS:
            return decoded(kind, column)
        return (pc.fill_null(column, 0) if name == "content" else column).cast(kind)

    def _partitions(self, found: pa.RecordBatch, manifest: Manifest) -> pa.Array:
        """Returns the partition of each file; fields that its spec does not have are null."""
        names = self.names.get(manifest.spec, {})
        columns = [
            each.shown(found.column(f"{_FILE}.partition.{names[each.id]}"))
            if each.id in names
            else pa.nulls(len(found), each.shown_as)
            for each in self.partition
        ]
        return pa.StructArray.from_arrays(columns, names=[each.name for each in self.partition])


def _with_sources(chosen: Collection[str], readable: bool) -> set[str]:
    """Returns the parts of a file that are decoded so that the chosen ones can be told."""
    counted = {"record_count"} if _FIRST_ROW in chosen else set()
    return {*chosen, *counted, *(STATISTICS if readable else ())}


def _first_rows(found: pa.RecordBatch, manifest: Manifest) -> pa.Array:
    """Returns the id of each file's first row. One that is not written follows from the manifest's and from the rows of
    the files before that have none either; a manifest without any has files without any.
    """
    written = found.column(f"{_FILE}.{_FIRST_ROW}")
    if manifest.first_row is None:
        return pa.nulls(len(found), pa.int64())
    live = pc.not_equal(pc.fill_null(found.column("status"), ADDED), DELETED)
    missing = pc.and_(live, pc.is_null(written))
    rows = pc.if_else(missing, found.column(f"{_FILE}.record_count"), 0)
    before = pc.subtract(pc.cumulative_sum(rows), rows)
    return pc.if_else(missing, pc.add(before, manifest.first_row), written)


def _wide(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if kind == _SHORT else kind


def _inherited(found: pa.RecordBatch, status: pa.Array, manifest: Manifest) -> dict[str, pa.Array]:
    """Returns snapshot and sequence numbers; what an entry leaves out is its manifest's, a number only if it added.

    Manifests of version 1 have no numbers at all: all of them are 0.
    """
    snapshot = pa.scalar(manifest.snapshot, pa.int64())
    inherits = pc.or_(pc.equal(status, ADDED), pa.scalar(manifest.sequence == 0))
    number = pc.if_else(inherits, pa.scalar(manifest.sequence, pa.int64()), pa.scalar(None, pa.int64()))
    return {
        "snapshot_id": pc.coalesce(found.column("snapshot_id"), snapshot),
        "sequence_number": pc.coalesce(found.column("sequence_number"), number),
        "file_sequence_number": pc.coalesce(found.column("file_sequence_number"), number),
    }
