"""Whether files are as their table says: looked at side by side, on whatever machine an engine works."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import ObjectNotFound
from firnline.model.files import FileKind
from firnline.ports.stores import Head

FAULTS = pa.schema([("key", pa.string()), ("kind", pa.string()), ("size", pa.int64()), ("found", pa.int64())])
THREADS = 16
"""Looks under way at a time, in one process: each is a short wait for the store."""


def faulty(files: pa.RecordBatch, store: Head, pool: ThreadPoolExecutor) -> pa.RecordBatch:
    """Returns the files that are missing or have another size, as FAULTS. Raises StoreError if the store cannot tell.

    A file of no known size only has to be there. What another table may own is not looked for: it may be where only
    readers come.
    """
    files = files.filter(pc.not_equal(files.column("kind"), FileKind.VIRTUAL.value))
    found = pa.array(pool.map(lambda key: _size(store, key), files.column("key").to_pylist()), pa.int64())
    other = pc.fill_null(pc.not_equal(found, files.column("size")), False)
    columns = [*(files.column(name) for name in FAULTS.names[:-1]), found]
    return pa.record_batch(columns, schema=FAULTS).filter(pc.or_(pc.is_null(found), other))


def unproved(sizes: pa.ChunkedArray, listed: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns which files a listing does not show to be as their table says; only these have to be asked for. `sizes`
    are those that the table says, `listed` those that the listing has; either is null where nothing is known.

    An empty object may be the marker of a folder, which is listed without its slash: it proves nothing.
    """
    return pc.invert(pc.fill_null(pc.and_(pc.equal(listed, sizes), pc.greater(listed, 0)), False))


def _size(store: Head, key: str) -> int | None:
    try:
        return store.head(key).size
    except ObjectNotFound:
        return None
