"""Manifests and manifest lists as Iceberg's specification lays them out, for versions 1 to 3, written by fastavro."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any

Json = Any
ROWS_PER_FILE = 10


class Status(IntEnum):
    """What a manifest says of a file: it was there before, it is new here, it is gone here."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class Content(IntEnum):
    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


@dataclass(frozen=True, slots=True)
class Item:
    """What one manifest entry describes: a file, or one deletion vector in a Puffin that others share."""

    path: str
    size: int
    content: Content = Content.DATA
    format: str = "PARQUET"
    referenced: str | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    status: Status
    item: Item
    snapshot: int


@dataclass(frozen=True, slots=True)
class WrittenManifest:
    """A manifest that was written, and what is in it."""

    path: str
    length: int
    deletes: bool
    snapshot: int
    entries: tuple[Entry, ...]

    @property
    def live(self) -> list[Item]:
        return [entry.item for entry in self.entries if entry.status is not Status.DELETED]


@dataclass(frozen=True, slots=True)
class AvroLayout:
    """How Avro files are laid out. A small `block_bytes` puts about one record into each block."""

    version: int
    codec: str = "deflate"
    block_bytes: int = 16_000

    def manifest(self, entries: Sequence[Entry], deletes: bool) -> bytes:
        metadata = {
            "schema": '{"type": "struct", "schema-id": 0, "fields": []}',
            "schema-id": "0",
            "partition-spec": "[]",
            "partition-spec-id": "0",
            "format-version": str(self.version),
            "content": "deletes" if deletes else "data",
        }
        return self._avro(entry_schema(self.version), (_entry(each) for each in entries), metadata)

    def manifest_list(self, manifests: Sequence[WrittenManifest], snapshot: int) -> bytes:
        metadata = {"snapshot-id": str(snapshot), "format-version": str(self.version)}
        return self._avro(list_schema(self.version), (_listed(each) for each in manifests), metadata)

    def _avro(self, schema: Json, records: Iterable[Json], metadata: dict[str, str]) -> bytes:
        import fastavro

        out = io.BytesIO()
        fastavro.writer(out, schema, records, self.codec, self.block_bytes, metadata)
        return out.getvalue()


@cache
def entry_schema(version: int) -> Json:
    """Returns the schema of a manifest entry, parsed."""
    first = [_field(0, "status", "int")]
    if version == 1:
        return _parsed("manifest_entry", [*first, _field(1, "snapshot_id", "long"), _data_file(version)])
    numbers = [_field(3, "sequence_number", "long", True), _field(4, "file_sequence_number", "long", True)]
    return _parsed("manifest_entry", [*first, _field(1, "snapshot_id", "long", True), *numbers, _data_file(version)])


@cache
def list_schema(version: int) -> Json:
    """Returns the schema of an entry of a manifest list, parsed. Version 1 has fewer columns, most of them optional."""
    counts = [
        _field(503 + place, f"{what}_files_count", "int", version == 1)
        for place, what in enumerate(("added", "existing", "deleted"), 1)
    ]
    rows = [
        _field(511 + place, f"{what}_rows_count", "long", version == 1)
        for place, what in enumerate(("added", "existing", "deleted"), 1)
    ]
    head = [_field(500, "manifest_path", "string"), _field(501, "manifest_length", "long")]
    head += [_field(502, "partition_spec_id", "int")]
    if version > 1:
        head += [_field(517, "content", "int"), _field(515, "sequence_number", "long")]
        head += [_field(516, "min_sequence_number", "long")]
    tail = [_field(519, "key_metadata", "bytes", True)]
    tail += [_field(520, "first_row_id", "long", True)] if version > 2 else []
    return _parsed("manifest_file", [*head, _field(503, "added_snapshot_id", "long"), *counts, *rows, *tail])


def _data_file(version: int) -> Json:
    plain = [_field(100, "file_path", "string"), _field(101, "file_format", "string")]
    plain += [_field(102, "partition", {"type": "record", "name": "r102", "fields": []})]
    plain += [_field(103, "record_count", "long"), _field(104, "file_size_in_bytes", "long")]
    plain += [_field(105, "block_size_in_bytes", "long")] if version == 1 else []
    statistics = [
        _field(109, "value_counts", _pairs(119, 120, "long"), True),
        _field(125, "lower_bounds", _pairs(126, 127, "bytes"), True),
        _field(131, "key_metadata", "bytes", True),
    ]
    content = [_field(134, "content", "int")] if version > 1 else []
    vectors = [
        _field(142, "first_row_id", "long", True),
        _field(143, "referenced_data_file", "string", True),
        _field(144, "content_offset", "long", True),
        _field(145, "content_size_in_bytes", "long", True),
    ]
    fields = [*content, *plain, *statistics, *(vectors if version > 2 else [])]
    return _field(2, "data_file", {"type": "record", "name": "r2", "fields": fields})


def _field(number: int, name: str, kind: Json, optional: bool = False) -> Json:
    if optional:
        return {"name": name, "type": ["null", kind], "default": None, "field-id": number}
    return {"name": name, "type": kind, "field-id": number}


def _pairs(key_id: int, value_id: int, value: str) -> Json:
    """Returns a map with numbers for keys, which Avro has not: an array of pairs."""
    fields = [_field(key_id, "key", "int"), _field(value_id, "value", value)]
    return {
        "type": "array",
        "items": {"type": "record", "name": f"k{key_id}_v{value_id}", "fields": fields},
        "logicalType": "map",
    }


def _parsed(name: str, fields: list[Json]) -> Json:
    import fastavro

    return fastavro.parse_schema({"type": "record", "name": name, "fields": fields})


def _entry(entry: Entry) -> Json:
    item = entry.item
    file = {
        "content": int(item.content),
        "file_path": item.path,
        "file_format": item.format,
        "partition": {},
        "record_count": ROWS_PER_FILE,
        "file_size_in_bytes": item.size,
        "block_size_in_bytes": 64 << 20,
        "value_counts": [{"key": 1, "value": ROWS_PER_FILE}],
        "lower_bounds": [{"key": 1, "value": b"\0\1\2\3"}],
        "referenced_data_file": item.referenced,
        "content_offset": item.offset,
        "content_size_in_bytes": None if item.offset is None else 4,
    }
    numbers = {"sequence_number": 1, "file_sequence_number": 1}
    return {"status": int(entry.status), "snapshot_id": entry.snapshot, **numbers, "data_file": file}


def _listed(manifest: WrittenManifest) -> Json:
    count = {status: sum(entry.status is status for entry in manifest.entries) for status in Status}
    totals = {
        f"{status.name.lower()}_{what}_count": count[status] * each
        for status in Status
        for what, each in (("files", 1), ("rows", ROWS_PER_FILE))
    }
    return totals | {
        "manifest_path": manifest.path,
        "manifest_length": manifest.length,
        "partition_spec_id": 0,
        "content": int(manifest.deletes),
        "sequence_number": 1,
        "min_sequence_number": 1,
        "added_snapshot_id": manifest.snapshot,
    }
