"""A written inventory in place of a listing: Parquet or CSV with the columns path, size and modified.

It only proposes candidates. It may be old, so what it lists is looked at again before anything is deleted.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from firnline.errors import UsageError
from firnline.model.locations import identity, is_dotted
from firnline.ports.listings import KeyRange
from firnline.stores.buckets import PAGE_RETRIES, Buckets, failing
from firnline.stores.keys import Key, object_key, object_name
from firnline.stores.pieces import LISTED

COLUMNS = ("path", "size", "modified")
_READ_AHEAD = 1 << 20
_NUMBER = re.compile(r"-?\d+")


class Inventory:
    """Reads one file, local or in a bucket. A pickled copy opens its own connections."""

    def __init__(self, file: str, properties: Mapping[str, str] | None = None) -> None:
        self._file = file
        self._buckets = Buckets(properties)

    def split(self, prefix: str, wanted: int) -> list[KeyRange]:
        """Returns a piece for each row group of a Parquet file, however many are wanted; one for all of a CSV."""
        with self._reading() as source:
            groups = pq.ParquetFile(source).metadata.num_row_groups if self._is_parquet(source) else 1
        return [KeyRange(prefix, block=number) for number in range(groups)]

    def batches(self, piece: KeyRange) -> Iterator[pa.RecordBatch]:
        """Yields the rows that lie under the piece's folder, whichever way they spell it."""
        row = 0
        with self._reading() as source:
            for batch in self._rows(source, piece.block or 0):
                yield _under(_listed(self._file, batch, row), piece.folder)
                row += len(batch)

    def _rows(self, source: pa.NativeFile, block: int) -> Iterator[pa.RecordBatch]:
        if self._is_parquet(source):
            file = pq.ParquetFile(source)
            self._check_columns(file.schema_arrow.names)
            yield from file.iter_batches(row_groups=[block], columns=list(COLUMNS))
        else:
            as_text = csv.ConvertOptions(column_types=dict.fromkeys(COLUMNS, pa.string()), strings_can_be_null=True)
            reader = csv.open_csv(source, convert_options=as_text)
            self._check_columns(reader.schema.names)
            yield from (batch.select(list(COLUMNS)) for batch in reader)

    def _check_columns(self, names: list[str]) -> None:
        if missing := [name for name in COLUMNS if name not in names]:
            raise UsageError(
                f"the inventory {self._file} has no column {', '.join(missing)}",
                f"it needs {', '.join(COLUMNS)}; it has {', '.join(names)}",
            )

    def _is_parquet(self, source: pa.NativeFile) -> bool:
        source.seek(0)
        start = source.read(4)
        source.seek(0)
        if not start:
            raise UsageError(
                f"the inventory {self._file} is empty", "an inventory without rows still names its columns"
            )
        return bool(start == b"PAR1")

    @contextmanager
    def _reading(self) -> Iterator[pa.NativeFile]:
        try:
            with self._opened() as source:
                yield source
        except (pa.ArrowException, FileNotFoundError) as error:
            raise UsageError(
                f"the inventory {self._file} cannot be read: {_first_line(error)}", "it is Parquet or CSV with a header"
            ) from error

    def _opened(self) -> Any:
        key = object_key(self._file)
        if key.scheme == "file":
            return pa.OSFile(key.path)
        return pa.PythonFile(io.BufferedReader(_Remote(self._buckets, key), _READ_AHEAD), "r")


class _Remote(io.RawIOBase):
    """An object as a file that can be read from any place."""

    def __init__(self, buckets: Buckets, key: Key) -> None:
        self._key = key
        self._at = 0
        with failing(key):
            self._bucket = buckets.opened(key, PAGE_RETRIES)
            self._size = int(obstore.head(self._bucket, object_name(key))["size"])

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, target: Any) -> int:
        length = min(len(target), self._size - self._at)
        if length <= 0:
            return 0
        with failing(self._key):
            target[:length] = obstore.get_range(self._bucket, object_name(self._key), start=self._at, length=length)
        self._at += length
        return length


def _listed(file: str, rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """Returns the rows as LISTED_COLUMNS. Raises UsageError for a row without a full path or a size."""
    paths, sizes = _texts(rows.column("path")), _sizes(rows.column("size"))
    for number, (path, size) in enumerate(zip(paths.to_pylist(), sizes.to_pylist(), strict=True), first + 1):
        if not path or not (path.startswith(("/", "file:")) or "://" in path) or is_dotted(path):
            raise UsageError(f"row {number} of the inventory {file} has no full path but {path!r}")
        if size is None or size < 0:
            raise UsageError(f"row {number} of the inventory {file} has no size")
    times = pa.array([_millis(each) for each in rows.column("modified").to_pylist()], pa.int64())
    return pa.record_batch([paths, sizes, times, pa.nulls(len(rows), pa.string())], schema=LISTED)


def _texts(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())


def _sizes(column: pa.Array) -> pa.Array:
    """Returns sizes as numbers; null where there is none."""
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    texts = [str(each).strip() if each is not None else "" for each in column.to_pylist()]
    return pa.array([int(text) if _NUMBER.fullmatch(text) else None for text in texts], pa.int64())


def _millis(modified: object) -> int | None:
    """Returns a time in milliseconds; None where it cannot be read or names no zone: the object's age is unknown then.

    Numbers are milliseconds since the epoch.
    """
    if isinstance(modified, int):
        return modified
    if isinstance(modified, str):
        text = modified.strip()
        if _NUMBER.fullmatch(text):
            return int(text)
        try:
            modified = datetime.fromisoformat(text)
        except ValueError:
            return None
    if not isinstance(modified, datetime) or modified.tzinfo is None:
        return None
    return round(modified.timestamp() * 1000)


def _under(listed: pa.RecordBatch, folder: str) -> pa.RecordBatch:
    stem = identity(folder).rstrip("/") + "/"
    inside = [identity(key).startswith(stem) for key in listed.column("key").to_pylist()]
    return listed.filter(pa.array(inside, pa.bool_()))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
