"""Columns of lists and manifests in whichever format the table's option `manifest.format` has them written."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.formats.avro import CorruptAvro, decode_many
from firnline.formats.avro.encoded import encoded
from firnline.formats.paimon.entry_places import Numbers

_PARQUET, _ORC = b"PAR1", b"ORC"


def columns_of(contents: Sequence[bytes], columns: Mapping[str, pa.DataType]) -> tuple[pa.RecordBatch, Numbers]:
    """Returns the rows of some files, and the number of the file that each comes from, as `decode_many` does."""
    if not any(data.startswith((_PARQUET, _ORC)) for data in contents):
        return decode_many(contents, columns)
    read = [_rows(data, columns) for data in contents]
    numbers = [np.full(len(rows), place, dtype=np.int64) for place, rows in enumerate(read)]
    return pa.concat_batches(read), np.concatenate(numbers)


def _rows(data: bytes, columns: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    if not data.startswith((_PARQUET, _ORC)):
        return decode_many([data], columns)[0]
    try:
        table = _table(data)
        found = [_column(table, name, kind) for name, kind in columns.items()]
    except (pa.ArrowException, OSError) as damage:
        raise CorruptAvro(str(damage)) from damage
    return pa.record_batch(found, names=list(columns))


def _table(data: bytes) -> pa.Table:
    if data.startswith(_PARQUET):
        import pyarrow.parquet as pq

        return pq.read_table(io.BytesIO(data))
    from pyarrow import orc

    return orc.read_table(io.BytesIO(data))


def _column(table: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    """Returns a column by its dotted name, null where the file has no such field; texts of a list as Avro has them."""
    first, *inner = name.split(".")
    if first not in table.column_names:
        return pa.nulls(len(table), kind)
    values = table.column(first).combine_chunks()
    for field in inner:
        if values.type.get_field_index(field) < 0:
            return pa.nulls(len(table), kind)
        values = pc.struct_field(values, field)
    if pa.types.is_list(values.type):
        return pa.array([encoded(each or ()) for each in values.to_pylist()], kind)
    return values.cast(kind)
