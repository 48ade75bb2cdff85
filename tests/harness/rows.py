"""Data files with real rows: ten numbers each, so that any engine's answer can be compared with what was written."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.parquet

from firnline.testing.manifests import ROWS_PER_FILE

_ID = "PARQUET:field_id"
_ROWS = pa.schema([pa.field("x", pa.int64(), metadata={_ID: "1"})])
_POSITIONS = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={_ID: "2147483546"}),
        pa.field("pos", pa.int64(), nullable=False, metadata={_ID: "2147483545"}),
    ]
)


def numbers(file: int) -> list[int]:
    """Returns the rows of the n-th file: no two files share one."""
    return list(range(file * ROWS_PER_FILE, (file + 1) * ROWS_PER_FILE))


def rows_file(rows: Sequence[int]) -> bytes:
    return _parquet(pa.table({"x": list(rows)}, schema=_ROWS))


def deletes_file(positions: Collection[tuple[str, int]]) -> bytes:
    """Returns a file of position deletes, ordered by path and position as the specification asks."""
    ordered = sorted(positions)
    columns = {"file_path": [path for path, _ in ordered], "pos": [place for _, place in ordered]}
    return _parquet(pa.table(columns, schema=_POSITIONS))


def read_rows(data: bytes) -> list[int]:
    return list(pyarrow.parquet.ParquetFile(pa.BufferReader(data)).read(use_threads=False).column("x").to_pylist())


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink, compression="none")
    return bytes(sink.getvalue())
