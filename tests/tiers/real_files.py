"""Files of random tables that can be read: data files of one row, and deletes that name it."""

from __future__ import annotations

import io
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.judge.materials import Material, Materials
from tests.judge.places import canonical

_PATH, _POSITION = 2147483546, 2147483545
_FIRST_ROW = b"\xd1\xd3\x39\x64" + struct.pack("<QIIIHHIH", 1, 0, 12346, 1, 0, 0, 16, 0)
"""The bitmap of position 0, as a deletion vector has it."""
_VECTOR = struct.pack(">I", len(_FIRST_ROW)) + _FIRST_ROW + struct.pack(">I", zlib.crc32(_FIRST_ROW))
_MAGIC = b"PFA1"


class RealFiles(Materials):
    """Writes what Java is told of. Each data file has one row, whose id no other has."""

    _content = b""

    def data_file(self) -> Material:
        spec = self._table.spec()
        partition = self._partition(spec)
        values = dict(each.split("=") for each in partition.split("/") if each)
        self._content = _parquet(id=(1, self._made), p=(2, values.get("p", "none")))
        path, size = self._file(f"data/{partition}".rstrip("/"), ".parquet")
        return self._told(spec, partition, path, size)

    def equality_deletes(self) -> Any:
        self._content = _parquet(id=(1, self._rng.randrange(max(1, self._made))))
        return super().equality_deletes()

    def position_deletes(self, of: Material) -> Any:
        self._content = _parquet(file_path=(_PATH, of.path), pos=(_POSITION, 0))
        return super().position_deletes(of)

    def deletion_vectors(self, of: list[Material]) -> list[Any]:
        blobs = [_blob(data.path, index) for index, data in enumerate(of)]
        footer = json.dumps({"blobs": blobs}).encode()
        end = _MAGIC + footer + struct.pack("<iI", len(footer), 0) + _MAGIC
        self._content = _MAGIC + _VECTOR * len(of) + end
        path, size = self._file("data", "-dv.puffin")
        return [self._vector(path, size, data, len(_VECTOR), index) for index, data in enumerate(of)]

    def _offset(self, share: int, index: int) -> int:
        return len(_MAGIC) + share * index

    def statistics_path(self, suffix: str) -> tuple[str, int]:
        self._content = b"statistics"
        return super().statistics_path(suffix)

    def _file(self, folder: str, suffix: str, size: int | None = None) -> tuple[str, int]:
        path, _ = super()._file(folder, suffix, size)
        Path(canonical(path)).write_bytes(self._content)
        return path, len(self._content)


def _blob(path: str, index: int) -> dict[str, Any]:
    return {
        "type": "deletion-vector-v1",
        "fields": [_POSITION],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": len(_MAGIC) + index * len(_VECTOR),
        "length": len(_VECTOR),
        "properties": {"referenced-data-file": path, "cardinality": "1"},
    }


def _parquet(**columns: tuple[int, int | str]) -> bytes:
    """Returns a file of one row; of each column its id and value are said."""
    types = {int: pa.int64(), str: pa.string()}
    fields = [
        pa.field(name, types[type(value)], nullable=False, metadata={"PARQUET:field_id": str(number)})
        for name, (number, value) in columns.items()
    ]
    sink = io.BytesIO()
    pq.write_table(pa.table([[value] for _, value in columns.values()], schema=pa.schema(fields)), sink)
    return sink.getvalue()
