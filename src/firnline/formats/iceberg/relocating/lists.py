"""Manifest lists: the path and the length of each manifest."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from firnline.errors import UnsupportedFormat
from firnline.formats.avro import decode
from firnline.formats.avro.encoded import varint
from firnline.formats.avro.splicing import splice
from firnline.formats.iceberg.relocating.naming import MovedPaths, NamingFile, Sizes
from firnline.formats.opening import required


def read_list(data: bytes) -> NamingFile:
    """Returns the list, which tells the sizes of all manifests. Raises UnsupportedFormat where they are encrypted."""
    entries = decode(
        data, {"manifest_path": pa.string(), "manifest_length": pa.int64(), "key_metadata": pa.binary()}
    ).batch
    if entries.column("key_metadata").null_count < len(entries):
        raise UnsupportedFormat("it names encrypted manifests", hint="without the keys their paths cannot be rewritten")
    required(entries, "manifest_length")
    paths = required(entries, "manifest_path").to_pylist()
    return NamingFile(partial(_written, data, paths), dict.fromkeys(paths))


def _written(data: bytes, paths: list[str], moved: MovedPaths, sizes: Sizes) -> bytes:
    def length(_: bytes, row: int) -> bytes:
        return varint(sizes[paths[row]])

    return splice(data, {"manifest_path": moved.of_encoded, "manifest_length": length})
