"""Batches as bytes: Arrow's own messages, compressed; an identity that equals its key is written once.

Thousands of them are read in a plan that opens nothing: their schema, nearly always the same, is parsed once, and
identities come back when all are one batch.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa

from firnline.ports.expanding import end_to_end

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
    """Returns the batch, for `as_one`; None where this version of Arrow cannot read it, or lengths make no sense."""
    try:
        schema_bytes, size = _LENGTHS.unpack_from(data)
        start = _LENGTHS.size + schema_bytes
        if size > _LARGEST_BATCH:
            return None
        schema = _schema(bytes(data[_LENGTHS.size : start]))
        return pa.ipc.read_record_batch(_CODEC.decompress(data[start:], size), schema)
    except (pa.ArrowException, OSError, struct.error):
        return None


def as_one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Returns the rows of all, each as it was before `to_bytes`."""
    if all(map(_lacks_identity, batches)):
        return _with_identity(pa.concat_batches(batches))
    return end_to_end([_with_identity(each) if _lacks_identity(each) else each for each in batches])


@lru_cache(maxsize=16)
def _schema(data: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(data))


def _is_canonical(batch: pa.RecordBatch) -> bool:
    return bool(batch.schema.names[:2] == ["identity", "key"] and batch.column("identity").equals(batch.column("key")))


def _without_identity(batch: pa.RecordBatch) -> pa.RecordBatch:
    names = batch.schema.names[1:]
    return batch.select(names).replace_schema_metadata({_SAME: b"1"})


def _lacks_identity(batch: pa.RecordBatch) -> bool:
    return _SAME in (batch.schema.metadata or {})


def _with_identity(batch: pa.RecordBatch) -> pa.RecordBatch:
    schema = pa.schema([batch.schema.field("key").with_name("identity"), *batch.schema])
    return pa.record_batch([batch.column("key"), *batch.columns], schema=schema)
