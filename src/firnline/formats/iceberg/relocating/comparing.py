"""Whether two rewritten files say the same: an earlier version of a library may have compressed one of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from firnline.formats.avro import CorruptAvro
from firnline.formats.avro.comparing import same_records

_PARQUET, _AVRO = b"PAR1", b"Obj\x01"


def says_the_same(one: bytes, other: bytes) -> bool:
    """Tells whether both hold the same records under the same schema; not if either cannot be read."""
    if one == other:
        return True
    if one.startswith(_AVRO) and other.startswith(_AVRO):
        try:
            return same_records(one, other)
        except CorruptAvro:
            return False
    return one.startswith(_PARQUET) and other.startswith(_PARQUET) and _same_rows(one, other)


def _same_rows(one: bytes, other: bytes) -> bool:
    try:
        first, second = (pq.read_table(pa.BufferReader(each)) for each in (one, other))
    except (pa.ArrowException, OSError):
        return False
    return bool(first.schema.equals(second.schema, check_metadata=True) and first.equals(second))
