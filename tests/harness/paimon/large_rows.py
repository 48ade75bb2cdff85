"""Entries of large Paimon manifests as arrays of bytes, laid out as Paimon 1.4's Java writer does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from harness.large.row_bytes import Bytes, Template, digits, number

ADD, DELETE = 0, 1
CODEC = "zstandard"
FIRST_PARTITION = 64
_DIGITS = 9
_WORD = 8
_BOUND = 16
"""Bytes that Paimon keeps of a text's least and greatest value."""


def row_of_bytes(fields: int, longer: int = 0) -> bytes:
    """Returns an empty binary row: how many fields there are, bits for nulls, a slot for each, and what is longer."""
    return fields.to_bytes(4, "big") + bytes(_WORD * (-(-(fields + _WORD) // 64) + fields) + longer)


@dataclass(frozen=True, slots=True)
class LargeEntries:
    """Entries of a table with a number as partition and one as key. `columns`: how many have statistics."""

    columns: int
    partitions: int
    buckets: int

    def template(self, kind: int) -> Template:
        row = Template().put(number(2)).put(number(kind))
        row.put(number(len(row_of_bytes(1)))).put(row_of_bytes(1)[:-_WORD]).place("partition", b"\x00\x00").put(
            bytes(6)
        )
        row.place("bucket", b"\x00").put(number(self.buckets))
        row.put(number(len("data-") + _DIGITS + 1 + 32 + len("-0.parquet"))).put(b"data-").place("file", b"0" * _DIGITS)
        row.put(b"-").put(b"0" * 32, 0x07).put(b"-0.parquet").noisy_number(4).noisy_number(3)
        for _ in range(2):
            _key(row)
        _statistics(row, 1, 0)
        _statistics(row, self.columns, (self.columns - 1) * _BOUND)
        row.noisy_number(3).noisy_number(3).put(number(0) + number(5)).put(number(0))
        return row.put(b"\x02" + number(1_794_739_897_473)).put(b"\x02\x00\x00\x02\x00\x00\x00\x00\x00")

    def rows(self, commit: int, files: int, kind: int) -> Bytes:
        """Returns the entries of all files that a commit added, one row each: the same names for either kind."""
        template = self.template(kind)
        rows, every = template.rows(commit, files), np.arange(files)
        part, bucket = FIRST_PARTITION + every % self.partitions, every // self.partitions % self.buckets
        rows[:, template.places["partition"]] = np.stack([part & 0xFF, part >> 8], axis=1)
        rows[:, template.places["bucket"]] = 2 * bucket[:, None]
        rows[:, template.places["file"]] = digits(commit * files + every, _DIGITS)
        return rows


def _key(row: Template) -> None:
    empty = row_of_bytes(1)
    row.put(number(len(empty)) + empty[:-_WORD]).put(bytes(4), 0x1F).put(bytes(4))


def _statistics(row: Template, columns: int, longer: int) -> None:
    """Adds least and greatest values, and how many nulls each column has."""
    for _ in range(2):
        empty = row_of_bytes(columns, longer)
        values = _WORD * columns + longer
        row.put(number(len(empty)) + empty[:-values]).put(empty[-values:], 0x1F)
    row.put(b"\x02" + number(columns)).put(b"\x02\x00" * columns).put(b"\x00")


@cache
def entry_schema() -> str:
    """Returns the schema of a manifest entry, as the entries above are laid out."""
    file = [
        *_fields("string", "_FILE_NAME"),
        *_fields("long", "_FILE_SIZE", "_ROW_COUNT"),
        *_fields("bytes", "_MIN_KEY", "_MAX_KEY"),
        *(_field(name, _stats(f"record__FILE_{name}")) for name in ("_KEY_STATS", "_VALUE_STATS")),
        *_fields("long", "_MIN_SEQUENCE_NUMBER", "_MAX_SEQUENCE_NUMBER", "_SCHEMA_ID"),
        *_fields("int", "_LEVEL"),
        _field("_EXTRA_FILES", _array("string")),
        _optional("_CREATION_TIME", {"type": "long", "logicalType": "timestamp-millis"}),
        _optional("_DELETE_ROW_COUNT", "long"),
        _optional("_EMBEDDED_FILE_INDEX", "bytes"),
        _optional("_FILE_SOURCE", "int"),
        _optional("_VALUE_STATS_COLS", _array("string")),
        _optional("_EXTERNAL_PATH", "string"),
        _optional("_FIRST_ROW_ID", "long"),
        _optional("_WRITE_COLS", _array("string")),
    ]
    of_file = {"type": "record", "name": "record__FILE", "fields": file}
    numbers = (*_fields("int", "_VERSION", "_KIND"), *_fields("bytes", "_PARTITION"))
    return _record([*numbers, *_fields("int", "_BUCKET", "_TOTAL_BUCKETS"), _field("_FILE", of_file)])


@cache
def list_schema() -> str:
    """Returns the schema of an entry of a manifest list."""
    ranges = [_optional(name, "int") for name in ("_MIN_BUCKET", "_MAX_BUCKET", "_MIN_LEVEL", "_MAX_LEVEL")]
    return _record(
        [
            *_fields("int", "_VERSION"),
            *_fields("string", "_FILE_NAME"),
            *_fields("long", "_FILE_SIZE", "_NUM_ADDED_FILES", "_NUM_DELETED_FILES"),
            _field("_PARTITION_STATS", _stats("record__PARTITION_STATS")),
            *_fields("long", "_SCHEMA_ID"),
            *ranges,
            *(_optional(name, "long") for name in ("_MIN_ROW_ID", "_MAX_ROW_ID")),
        ]
    )


def listed(name: str, size: int, added: int, deleted: int) -> bytes:
    """Returns a manifest as an entry of a list."""
    empty = number(len(row_of_bytes(1))) + row_of_bytes(1)
    facts = number(2) + number(len(name)) + name.encode() + b"".join(map(number, (size, added, deleted)))
    return facts + 2 * empty + b"\x02\x02\x02\x00\x00" + number(0) + 2 * (b"\x02\x00") + 2 * (b"\x02\x0a") + b"\x00\x00"


def _record(fields: list[dict[str, Any]]) -> str:
    named = {"type": "record", "name": "record", "namespace": "org.apache.paimon.avro.generated"}
    return json.dumps({**named, "fields": fields})


def _stats(name: str) -> dict[str, Any]:
    nulls = _optional("_NULL_COUNTS", _array(["null", "long"]))
    return {"type": "record", "name": name, "fields": [*_fields("bytes", "_MIN_VALUES", "_MAX_VALUES"), nulls]}


def _array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _fields(kind: str, *names: str) -> list[dict[str, Any]]:
    return [_field(name, kind) for name in names]


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind}


def _optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}
