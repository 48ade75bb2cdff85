"""`partitions` of a snapshot: what its live files come to, by partition. As in Iceberg, it is made while planning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from firnline.model.snapshots import SnapshotId
from firnline.ports.inspect import EntryReader, Manifest
from firnline.sql.contents import FILE, live_entries
from firnline.sql.relations import Piece, TimeBounds
from firnline.sql.snapshots import INSTANT

_DATA, _POSITIONS, _EQUALITY = 0, 1, 2
_WHOLE, _SHORT = pa.int64(), pa.int32()
_SUMS: Mapping[str, tuple[int, str | None, pa.DataType]] = {
    "record_count": (_DATA, "record_count", _WHOLE),
    "file_count": (_DATA, None, _SHORT),
    "total_data_file_size_in_bytes": (_DATA, "file_size_in_bytes", _WHOLE),
    "position_delete_record_count": (_POSITIONS, "record_count", _WHOLE),
    "position_delete_file_count": (_POSITIONS, None, _SHORT),
    "equality_delete_record_count": (_EQUALITY, "record_count", _WHOLE),
    "equality_delete_file_count": (_EQUALITY, None, _SHORT),
}
"""Each column with the content of the files that count, and what of them is summed up; None counts them."""
_NEEDED = ("content", "record_count", "file_size_in_bytes", "spec_id")
_AT, _BY, _SPEC = "last_updated_at", "last_updated_snapshot_id", "spec_id"


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """A row for each partition that has files. `times_ms` are the table's snapshots: the last one that added any of the
    files is told if it is among them.
    """

    entries: EntryReader
    manifests: tuple[Manifest, ...]
    times_ms: Mapping[SnapshotId, int] = field(repr=False)

    @property
    def schema(self) -> pa.Schema:
        """Iceberg's columns. A table that is not partitioned has neither a partition nor a spec."""
        keys = _keys(self.entries.schema)
        spec = [(_SPEC, _SHORT)] if keys and _SPEC in self._parts() else []
        partition = [("partition", pa.struct(keys))] if keys else []
        sums = [(name, kind) for name, (_, _, kind) in _SUMS.items()]
        return pa.schema([*partition, *spec, *sums, (_AT, INSTANT), (_BY, _WHOLE)])

    def pieces(self, bounds: TimeBounds) -> Sequence[Piece]:
        """Returns all rows as one piece. One manifest is in memory at a time, and what was summed up."""
        keys = _keys(self.entries.schema)
        wanted = ["snapshot_id", *(f"{FILE}.{name}" for name in (*_NEEDED, "partition") if name in self._parts())]
        facts = (_facts(live_entries(self.entries, each, wanted), keys, self.times_ms) for each in self.manifests)
        summed = [_summed(each, len(keys)) for each in facts if len(each)]
        return [_shown(_summed(pa.concat_tables(summed), len(keys)), keys, self.schema)] if summed else []

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from piece.select(list(columns)).to_batches()

    def _parts(self) -> list[str]:
        return [each.name for each in self.entries.schema.field(FILE).type]


def _keys(schema: pa.Schema) -> list[pa.Field]:
    """Returns the fields of the partition; none where the table is not partitioned."""
    kind = schema.field(FILE).type
    place = kind.get_field_index("partition")
    return [] if place < 0 else list(kind.field(place).type)


def _facts(found: pa.RecordBatch, keys: Sequence[pa.Field], times_ms: Mapping[SnapshotId, int]) -> pa.Table:
    """Returns what each file adds to the sums of its partition, whose parts are called by their place."""
    file = found.column(FILE)
    content, names = file.field("content"), [each.name for each in file.type]
    columns = {f"{place}": file.field("partition").field(place) for place in range(len(keys))}
    ones = pa.repeat(pa.scalar(1, _WHOLE), len(found))
    for name, (counted, part, _) in _SUMS.items():
        value = ones if part is None else file.field(part)
        columns[name] = pc.if_else(pc.equal(content, counted), value, pa.scalar(0, _WHOLE))
    columns[_SPEC] = file.field(_SPEC) if _SPEC in names else pa.nulls(len(found), _SHORT)
    columns[_AT], columns[_BY] = _updates(found.column("snapshot_id"), times_ms)
    return pa.table(columns)


def _updates(snapshots: pa.Array, times_ms: Mapping[SnapshotId, int]) -> tuple[pa.Array, pa.Array]:
    """Returns when the snapshot of each entry was committed, and its id; neither if the table has it no more."""
    at = [None if each is None else times_ms.get(str(each)) for each in snapshots.to_pylist()]
    micros = pa.array([None if each is None else each * 1000 for each in at], _WHOLE)
    return micros, pc.if_else(pc.is_valid(micros), snapshots, pa.scalar(None, _WHOLE))


def _summed(facts: pa.Table, keys: int) -> pa.Table:
    """Returns one row for each partition. Of updates the last that is known counts, so the newest comes last."""
    newest = facts.sort_by(_AT)
    by = [str(place) for place in range(keys)]
    asked = [*((name, "sum") for name in _SUMS), (_SPEC, "max"), (_AT, "last"), (_BY, "last")]
    found = newest.group_by(by, use_threads=False).aggregate(asked)
    return found.rename_columns([_plain(name) for name in found.column_names])


def _plain(name: str) -> str:
    for end in ("_sum", "_max", "_last"):
        name = name.removesuffix(end)
    return name


def _shown(summed: pa.Table, keys: Sequence[pa.Field], schema: pa.Schema) -> pa.Table:
    values = [summed.column(str(place)).combine_chunks() for place in range(len(keys))]
    struct = {"partition": pa.StructArray.from_arrays(values, fields=list(keys))} if keys else {}
    shown = [struct[each.name] if each.name in struct else summed.column(each.name).cast(each.type) for each in schema]
    return pa.table(shown, schema=schema)
