"""Batches as bytes: Arrow's own messages, compressed; an identity that equals its key is written once.

Thousands of them are read in a plan that opens nothing, so their schema, nearly always the same, is parsed once.
"""

from __future__ import annotations

import struct
from functools import lru_cache

import pyarrow as pa

_LENGTHS = struct.Struct("<IQ")
"""Of the schema, and of the batch before it was compressed."""
_LARGEST_BATCH = 1 << 30
_CODEC = pa.Codec("lz4_raw")
_SAME = b"firnline.identity-is-key"


def to_bytes(batch: pa.RecordBatch) -> bytes:
    """Returns the batch as bytes that `from_bytes` turns back into an equal one."""
    sent = _without_identity(batch) if _is_canonical(batch) else batch
    schema, rows = sent.schema.serialize().to_pybytes(), sent.serialize()
    return b"".join([_LENGTHS.pack(len(schema), len(rows)), schema, _CODEC.compress(rows, asbytes=True)])


def from_bytes(data: bytes | memoryview) -> pa.RecordBatch | None:
    """Returns the batch; None where this version of Arrow cannot read it, or the lengths in it make no sense."""
    try:
        schema_bytes, size = _LENGTHS.unpack_from(data)
        start = _LENGTHS.size + schema_bytes
        if size > _LARGEST_BATCH:
            return None
        schema = _schema(bytes(data[_LENGTHS.size : start]))
        batch = pa.ipc.read_record_batch(_CODEC.decompress(data[start:], size), schema)
    except (pa.ArrowException, OSError, struct.error):
        return None
    return _with_identity(batch) if _SAME in (schema.metadata or {}) else batch


@lru_cache(maxsize=16)
def _schema(data: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(data))


def _is_canonical(batch: pa.RecordBatch) -> bool:
    return bool(batch.schema.names[:2] == ["identity", "key"] and batch.column("identity").equals(batch.column("key")))


def _without_identity(batch: pa.RecordBatch) -> pa.RecordBatch:
    names = batch.schema.names[1:]
    return batch.select(names).replace_schema_metadata({_SAME: b"1"})


def _with_identity(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([batch.column("key"), *batch.columns], schema=_whole(batch.schema))


@lru_cache(maxsize=16)
def _whole(schema: pa.Schema) -> pa.Schema:
    return pa.schema([schema.field("key").with_name("identity"), *schema])
