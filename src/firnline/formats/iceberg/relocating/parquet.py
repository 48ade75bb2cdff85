"""Position deletes in Parquet: the column of paths written anew, and all else as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from firnline.errors import UnsupportedFormat
from firnline.formats.damage import Damaged
from firnline.formats.iceberg.relocating.bounds import PATH_ID, PATH_NAME
from firnline.formats.iceberg.relocating.naming import MovedPaths

_FIELD_ID: Final = b"PARQUET:field_id"
_ARROW_SCHEMA: Final = b"ARROW:schema"
_TEXTS: Final = (pa.string(), pa.large_string())


def relocated_parquet(data: bytes, paths: MovedPaths) -> bytes:
    """Returns the file with the paths as they are moved. Its schema with the ids, its metadata, its row groups and the
    order of its rows stay, and each column's codec.

    Raises Damaged, and UnsupportedFormat where a column would be written as another type than it has.
    """
    with _reading():
        file = pq.ParquetFile(pa.BufferReader(data))
        column = _path_column(file.schema_arrow)
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, file.schema_arrow, **_as_written(file)) as writer:
            for number in range(file.num_row_groups):
                group = file.read_row_group(number, use_threads=False)
                moved = _moved(group.column(column), paths)
                group = group.set_column(column, group.schema.field(column), moved)
                writer.write_table(group, row_group_size=max(1, len(group)))
            if not _says_arrow(file):  # else the writer adds what the schema has
                writer.add_key_value_metadata(file.metadata.metadata or {})
    written = sink.getvalue()
    _refuse_other_types(file, pq.ParquetFile(pa.BufferReader(written)))
    return bytes(written)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except pa.ArrowNotImplementedError as strange:
        raise UnsupportedFormat(f"it is not understood: {strange}", hint=_HINT) from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as damage:
        raise Damaged(str(damage)) from None


_HINT = "rewrite the table's position deletes without the rows in them, then hand its history over; nothing was changed"


def _path_column(schema: pa.Schema) -> int:
    """Returns which column has the paths: the one with their id and, in a file without ids, the one so called."""
    ids = [int((each.metadata or {}).get(_FIELD_ID, -1)) for each in schema]
    found = ids.index(PATH_ID) if PATH_ID in ids else schema.get_field_index(PATH_NAME)
    if found < 0:
        raise Damaged("it has no column of paths")
    if schema.field(found).type not in _TEXTS:
        raise Damaged(f"its paths are {schema.field(found).type}")
    return found


def _as_written(file: pq.ParquetFile) -> dict[str, Any]:
    """Returns how the file was written, as far as it tells."""
    columns = range(len(file.schema)) if file.num_row_groups else ()
    chunks = [file.metadata.row_group(0).column(number) for number in columns]
    codecs = {each.path_in_schema: each.compression.replace("UNCOMPRESSED", "NONE") for each in chunks}
    leaves = [file.schema.column(number) for number in range(len(file.schema))]
    whole = any(each.logical_type.type == "DECIMAL" and each.physical_type.startswith("INT") for each in leaves)
    return {
        "compression": codecs or "zstd",
        "store_schema": _says_arrow(file),
        "store_decimal_as_integer": whole,
    }


def _says_arrow(file: pq.ParquetFile) -> bool:
    return _ARROW_SCHEMA in (file.metadata.metadata or {})


def _moved(column: pa.ChunkedArray, paths: MovedPaths) -> pa.ChunkedArray:
    return pa.chunked_array([_moved_chunk(each, paths) for each in column.chunks], column.type)


def _moved_chunk(chunk: pa.Array, paths: MovedPaths) -> pa.Array:
    """Returns the paths of a chunk, moved. A chunk says few paths, each for many rows."""
    known = chunk.dictionary_encode()
    moved = pa.array([paths.of(each) for each in known.dictionary.to_pylist()], chunk.type)
    return moved.take(known.indices)


def _refuse_other_types(old: pq.ParquetFile, new: pq.ParquetFile) -> None:
    """Raises UnsupportedFormat unless both have one schema. The paths and positions always have; but a file may also
    hold the rows that it deletes, in types that Arrow has no equal of.
    """
    if not (old.schema.equals(new.schema) and old.schema_arrow.equals(new.schema_arrow, check_metadata=True)):
        raise UnsupportedFormat("it holds rows in types that cannot be written as they are", hint=_HINT)
