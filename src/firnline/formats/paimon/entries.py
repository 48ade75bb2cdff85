"""Rows out of manifest lists, manifests and index manifests."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import UnsupportedFormat
from firnline.formats.avro import decode_many, encoded_texts
from firnline.formats.avro.encoded import EMPTY
from firnline.formats.columns import ROW_SCHEMA, first_dotted, identities
from firnline.formats.paimon.checks import (
    names_of,
    ops_of,
    plain_name,
    refuse_unknown_version,
)
from firnline.formats.paimon.layout import Layout
from firnline.formats.required import required, sizes_of
from firnline.model.files import FileKind

ENTRY_SCHEMA = pa.schema([*ROW_SCHEMA, pa.field("fold", pa.int64(), False), pa.field("op", pa.int8(), False)])
"""Rows with what they fold by, and whether they add (+1) or take away (-1)."""

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Named = tuple[pa.RecordBatch, Numbers]
"""Rows, and the number of the unit that names each."""

_LIST_COLUMNS = {
    "_VERSION": pa.int64(), "_FILE_NAME": pa.string(), "_FILE_SIZE": pa.int64(), "_EXTRA_FILES": pa.binary(),
}  # fmt: skip
_ENTRY_COLUMNS = {
    "_VERSION": pa.int64(),
    "_KIND": pa.int64(),
    "_PARTITION": pa.binary(),
    "_BUCKET": pa.int64(),
    "_FILE._FILE_NAME": pa.string(),
    "_FILE._FILE_SIZE": pa.int64(),
    "_FILE._LEVEL": pa.int64(),
    "_FILE._EXTRA_FILES": pa.binary(),
    "_FILE._EMBEDDED_FILE_INDEX": pa.binary(),
    "_FILE._EXTERNAL_PATH": pa.string(),
}
_INDEX_COLUMNS = {
    "_VERSION": pa.int64(),
    "_KIND": pa.int64(),
    "_PARTITION": pa.binary(),
    "_BUCKET": pa.int64(),
    "_INDEX_TYPE": pa.string(),
    "_FILE_NAME": pa.string(),
    "_FILE_SIZE": pa.int64(),
    "_EXTERNAL_PATH": pa.string(),
}
_LIST_VERSION, _ENTRY_VERSION, _INDEX_VERSION = 2, 2, 1


def list_rows(contents: Sequence[bytes], layout: Layout) -> Named:
    """Returns the manifests that lists name, each as a unit to open, and the files that come beside one."""
    found, of = decode_many(contents, _LIST_COLUMNS)
    refuse_unknown_version(found, _LIST_VERSION, "a manifest list")
    keys = _below(layout.manifest_folder, names_of(found, "_FILE_NAME"))
    manifests = _rows(keys, sizes_of(found, "_FILE_SIZE"), pa.repeat(FileKind.MANIFEST.value, len(found)), opens=True)
    extras = _extras(found.column("_EXTRA_FILES"))
    places = _places(extras)
    beside = pa.array([f"{layout.manifest_folder}/{plain_name(name)}" for each in extras for name in each], pa.string())
    sidecars = _rows(beside, _untold(beside), pa.repeat(FileKind.INDEX.value, len(beside)), opens=False)
    return pa.concat_batches([manifests, sidecars]), np.concatenate([of, of[places]])


def manifest_rows(contents: Sequence[bytes], layout: Layout) -> Named:
    """Returns every entry: an added file counts for it, a deleted one against it, in the same fold."""
    found, of = decode_many(contents, _ENTRY_COLUMNS)
    refuse_unknown_version(found, _ENTRY_VERSION, "a manifest entry")
    names, op = names_of(found, "_FILE._FILE_NAME"), ops_of(found)
    places = _Places(found, layout)
    keys = _or_external(pc.binary_join_element_wise(places.folders(), names, "/"), found, "_FILE._EXTERNAL_PATH")
    extras = _extras(found.column("_FILE._EXTRA_FILES"))
    folds = _folds(found, places, extras)
    kinds = pc.if_else(pc.starts_with(names, layout.changelog_prefix), FileKind.CHANGELOG.value, FileKind.DATA.value)
    files = _rows(keys, sizes_of(found, "_FILE._FILE_SIZE"), kinds, opens=False, folds=folds, op=op)
    beside = _beside(keys, extras, kinds, folds, op)
    return pa.concat_batches([files, beside]), np.concatenate([of, of[_places(extras)]])


def index_rows(contents: Sequence[bytes], layout: Layout) -> Named:
    """Returns the files that index manifests list. Each is whole: an entry that says deleted is no entry."""
    found, of = decode_many(contents, _INDEX_COLUMNS)
    refuse_unknown_version(found, _INDEX_VERSION, "an index manifest entry")
    listed = pc.equal(ops_of(found), 1)
    found, of = found.filter(listed), of[listed.to_numpy(zero_copy_only=False)]
    names = names_of(found, "_FILE_NAME")
    if layout.index_beside_data:
        keys = pc.binary_join_element_wise(_Places(found, layout).folders(), names, "/")
    else:
        keys = _below(layout.index_folder, names)
    keys = _or_external(keys, found, "_EXTERNAL_PATH")
    vectors = pc.fill_null(pc.equal(found.column("_INDEX_TYPE"), "DELETION_VECTORS"), False)
    kinds = pc.if_else(vectors, FileKind.DELETION_VECTORS.value, FileKind.INDEX.value)
    return _rows(keys, sizes_of(found, "_FILE_SIZE"), kinds, opens=False), of


class _Places:
    """The folder of each entry: nearly all entries of a manifest share a few partitions and buckets."""

    def __init__(self, found: pa.RecordBatch, layout: Layout) -> None:
        partitions = required(found, "_PARTITION").dictionary_encode()
        buckets = required(found, "_BUCKET").to_numpy()
        codes = partitions.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        pairs, self.places = np.unique(np.stack([codes, buckets]), axis=1, return_inverse=True)
        self.places = self.places.reshape(-1)
        values = partitions.dictionary.to_pylist()
        self.pairs = [(values[code], int(bucket)) for code, bucket in pairs.T.tolist()]
        self._layout = layout

    def folders(self) -> pa.Array:
        named = pa.array([self._layout.bucket_folder(*pair) for pair in self.pairs], pa.string())
        return named.take(pa.array(self.places))

    def digests(self) -> Any:
        said = np.array([_digest(partition, b"%d" % bucket) for partition, bucket in self.pairs], dtype=np.int64)
        return said[self.places]


def _folds(found: pa.RecordBatch, places: _Places, extras: list[tuple[str, ...]]) -> pa.Array:
    """Returns a digest of what identifies each entry beside its path: partition, bucket, level, extra files, index.

    Paimon writes an upgrade as a deletion at one level and an addition at another, of one file: these must not cancel
    each other.
    """
    levels = pc.fill_null(found.column("_FILE._LEVEL"), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    folds = places.digests() ^ (levels * np.int64(0x5851F42D4C957F2D))
    index = found.column("_FILE._EMBEDDED_FILE_INDEX")
    if index.null_count < len(index) or any(extras):
        said = zip(extras, index.to_pylist(), strict=True)
        folds = folds ^ np.array([_of_extras(names, embedded) for names, embedded in said], dtype=np.int64)
    return pa.array(folds, pa.int64())


def _of_extras(names: tuple[str, ...], embedded: bytes | None) -> int:
    return _digest(*(name.encode() for name in names), embedded or b"") if names or embedded else 0


def _digest(*parts: bytes) -> int:
    """Returns 64 bits; the parts are told apart by their lengths."""
    said = blake2b(digest_size=8)
    for part in parts:
        said.update(len(part).to_bytes(8, "little") + part)
    return int.from_bytes(said.digest(), "little", signed=True)


def _beside(keys: pa.Array, extras: list[tuple[str, ...]], kinds: pa.Array, folds: pa.Array, op: pa.Array) -> Any:
    """Returns the extra files, in the folder of their file and with its fate."""
    chosen = pa.array(_places(extras), pa.int64())
    owners, names = keys.take(chosen).to_pylist(), [name for each in extras for name in each]
    found = [f"{owner.rpartition('/')[0]}/{plain_name(name)}" for owner, name in zip(owners, names, strict=True)]
    sizes = pa.nulls(len(found), pa.int64())
    return _rows(
        pa.array(found, pa.string()),
        sizes,
        kinds.take(chosen),
        opens=False,
        folds=folds.take(chosen),
        op=op.take(chosen),
    )


def _places(extras: list[tuple[str, ...]]) -> Numbers:
    """Returns the place of the entry that each extra file belongs to."""
    counts = [len(names) for names in extras] if any(extras) else []
    return np.repeat(np.arange(len(counts)), counts)


def _untold(keys: pa.Array) -> pa.Array:
    return pa.nulls(len(keys), pa.int64())


def _rows(
    keys: pa.Array, sizes: pa.Array, kinds: pa.Array, *, opens: bool, folds: Any = None, op: Any = None
) -> pa.RecordBatch:
    strange = first_dotted(keys)
    if strange is not None:
        raise UnsupportedFormat(f"the path {strange!r} has a segment '.' or '..'", hint="nothing was changed")
    count = len(keys)
    folds = pa.repeat(pa.scalar(0, pa.int64()), count) if folds is None else folds
    op = pa.repeat(pa.scalar(1, pa.int8()), count) if op is None else op
    columns = [identities(keys), keys, sizes, kinds, pa.repeat(pa.scalar(opens), count), folds, op.cast(pa.int8())]
    return pa.record_batch(columns, schema=ENTRY_SCHEMA)


def _extras(encoded: pa.Array) -> list[tuple[str, ...]]:
    """Returns the extra files of each entry; nearly all have none, which is seen without decoding."""
    empty = pc.fill_null(pc.equal(encoded, EMPTY), True)
    if pc.all(empty).as_py() is not False:
        return [()] * len(encoded)
    return [() if each is None else encoded_texts(each) for each in encoded.to_pylist()]


def _below(folder: str, names: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(pa.repeat(folder, len(names)), names, "/")


def _or_external(keys: pa.Array, found: pa.RecordBatch, column: str) -> pa.Array:
    external = found.column(column)
    return keys if external.null_count == len(external) else pc.coalesce(external, keys)
