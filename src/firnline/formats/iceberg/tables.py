"""Iceberg's own metadata tables: the logs, manifests and entries, with the columns that Iceberg gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.formats.avro import decode
from firnline.formats.iceberg import fields
from firnline.formats.iceberg.counts import count_of, refuse_cut
from firnline.formats.iceberg.entries import ADDED, IcebergEntries
from firnline.formats.iceberg.expand import roots_of
from firnline.formats.iceberg.partitions import names_by_spec, partition_fields
from firnline.formats.iceberg.statistics import statistics_columns
from firnline.formats.opening import opened
from firnline.model.files import File, FileKind
from firnline.model.snapshots import SnapshotId
from firnline.ports.formats import State
from firnline.ports.inspect import Manifest, latest_at
from firnline.ports.stores import Get

_COUNTS = ("added", "existing", "deleted")
_NUMBERS = ("manifest_length", "partition_spec_id", "content", "sequence_number", "added_snapshot_id")
_LIST_COLUMNS = {
    "manifest_path": pa.string(),
    **dict.fromkeys(_NUMBERS, pa.int64()),
    **{f"{each}_files_count": pa.int64() for each in _COUNTS},
    **{f"{each}_data_files_count": pa.int64() for each in _COUNTS},
    "first_row_id": pa.int64(),
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
_STATUSES = {"existing": 0, "added": ADDED, "deleted": 2}
_LISTED = MANIFESTS.append(pa.field("first_row_id", pa.int64()))
METADATA_LOG = pa.schema(
    [
        ("timestamp", pa.timestamp("us", "UTC")), ("file", pa.string()), ("latest_snapshot_id", pa.int64()),
        ("latest_schema_id", _SHORT), ("latest_sequence_number", pa.int64()),
    ]
)  # fmt: skip


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

    def metadata_log(self, state: State) -> pa.Table:
        """Returns the metadata files with the snapshot that was current when each was written, if it is still told."""
        files = [*fields.objects(state.document, "metadata-log", state.fence), _present(state)]
        log = list(self.log(state))
        snapshots = {
            str(each["snapshot-id"]): each for each in fields.objects(state.document, "snapshots", state.fence)
        }
        rows = [_log_row(each, log, snapshots, state.fence) for each in files]
        return pa.Table.from_pylist(rows, schema=METADATA_LOG)

    def manifests(self, state: State, snapshot: SnapshotId | None) -> pa.Table:
        return self._listed(state, snapshot).select(MANIFESTS.names)

    def _listed(self, state: State, snapshot: SnapshotId | None) -> pa.Table:
        """Returns the manifests, with what else entries inherit from them."""
        units = [unit for owner, unit in roots_of(state) if owner == snapshot]
        lists = [unit for unit in units if unit.kind is FileKind.MANIFEST_LIST]
        named = [unit for unit in units if unit.kind is FileKind.MANIFEST]
        rows = [self._named(unit, str(snapshot)) for unit in named]
        inline = pa.Table.from_pylist(rows, schema=_LISTED)
        return pa.concat_tables([inline, *(self._in_list(unit) for unit in lists)])

    def units(self, state: State, snapshot: SnapshotId | None) -> list[Manifest]:
        columns = ("path", "length", "partition_spec_id", "added_snapshot_id", "sequence_number", "first_row_id")
        rows = self._listed(state, snapshot).select(columns).to_pylist()
        return [Manifest(*(row[name] for name in columns)) for row in rows]

    def entries(self, state: State) -> IcebergEntries:
        columns = statistics_columns(state)
        return IcebergEntries(self.store, partition_fields(state), names_by_spec(state), columns)

    def live(self, state: State, snapshot: SnapshotId | None) -> IcebergEntries:
        """Returns the same reader: no manifest of a snapshot lists what another one removes."""
        return self.entries(state)

    def _in_list(self, unit: File) -> pa.Table:
        with opened(self.store, unit) as data:
            listed = decode(data, _LIST_COLUMNS).batch
            refuse_cut(listed, np.zeros(len(listed), dtype=np.int64), [unit.expects], [data])
        return pa.Table.from_batches([_manifest_rows(listed)])

    def _named(self, unit: File, snapshot: SnapshotId) -> dict[str, Any]:
        """Returns the row of a manifest that a snapshot of version 1 names without a list, which would say all this."""
        with opened(self.store, unit) as data:
            found = decode(data, {"status": pa.int64()})
        status = pc.fill_null(found.batch.column("status"), ADDED).to_pylist()
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


def _present(state: State) -> fields.Fields:
    return {"timestamp-ms": state.document.get("last-updated-ms"), "metadata-file": state.fence}


def _log_row(
    said: fields.Fields,
    log: Sequence[tuple[int, SnapshotId]],
    snapshots: Mapping[SnapshotId, fields.Fields],
    where: str,
) -> dict[str, Any]:
    at = fields.whole(said, "timestamp-ms", where)
    latest = latest_at(log, at)
    snapshot = snapshots.get(latest or "", {})
    return {
        "timestamp": at * 1000,
        "file": fields.text(said, "metadata-file", where),
        "latest_snapshot_id": None if latest is None else int(latest),
        "latest_schema_id": snapshot.get("schema-id"),
        "latest_sequence_number": snapshot.get("sequence-number", 0) if snapshot else None,
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
        "first_row_id": listed.column("first_row_id"),
    }
    return pa.record_batch([columns[field.name].cast(field.type) for field in _LISTED], schema=_LISTED)
