"""Where a table's files lie: from what a manifest says of a file to its path, for a whole column at once.

The file lies in the bucket of the first, under `compacted-changelog-UUID$BUCKET-LENGTH.cc-FORMAT`. Entries of the
others name it in their own bucket, with the place of their part behind: `…$BUCKET-LENGTH-OFFSET-PART.cc-FORMAT`. There
is no file of that name. What an entry says of its size is that of its part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import UnreadableMetadata, UnsupportedFormat
from firnline.formats.avro import encoded_texts
from firnline.formats.avro.gather import EMPTY
from firnline.formats.damage import REPAIR
from firnline.formats.opening import required
from firnline.formats.paimon.reading import fields
from firnline.formats.paimon.reading.schema import Schema, Type
from firnline.formats.paimon.walking.partitions import DEFAULT_NAME, folder_name, partition_values, value_text
from firnline.model.locations import join

_PREFIX = "compacted-changelog-"
_PART = rf"^(.*/)?bucket-[^/]+/({_PREFIX}[^/.$]*\$)([0-9]+)-([0-9]+)-[0-9]+-[0-9]+(\.[^/]*)$"
_WHOLE = r"\1bucket-\3/\2\3-\4\5"


def is_packed(names: pa.Array) -> pa.Array:
    """Tells of each name whether it is that of such a file, or of a part of one."""
    return pc.starts_with(names, _PREFIX)


def unpacked(keys: pa.Array) -> pa.Array:
    """Returns the paths with that of the whole file for each part; all others as they are."""
    if not pc.any(pc.match_substring(keys, _PREFIX)).as_py():
        return keys
    return pc.replace_substring_regex(keys, pattern=_PART, replacement=_WHOLE)


POSTPONED = -2


@dataclass(frozen=True, slots=True)
class Layout:
    """The options that decide on paths, all of them the table's for good once it has data."""

    location: str
    partition: tuple[tuple[str, Type], ...]
    legacy: bool
    default_name: str
    data_folder: str
    index_beside_data: bool
    changelog_prefix: str

    @staticmethod
    def of(location: str, schema: Schema) -> Layout:
        options = schema.options
        return Layout(
            location,
            schema.partition,
            fields.flag(options, "partition.legacy-name", True, schema.where),
            options.get("partition.default-name", DEFAULT_NAME),
            _data_folder(schema),
            fields.flag(options, "index-file-in-data-file-dir", False, schema.where),
            options.get("changelog-file.prefix", "changelog-"),
        )

    def bucket_folder(self, partition: bytes, bucket: int) -> str:
        """Returns the folder of a bucket. Raises where the partition's bytes make no sense."""
        values = partition_values(partition, tuple(kind for _, kind in self.partition))
        parts = [
            folder_name(key, value_text(value, kind, self.legacy) or self.default_name)
            for (key, kind), value in zip(self.partition, values, strict=True)
        ]
        name = "bucket-postpone" if bucket == POSTPONED else f"bucket-{bucket}"
        return join(self.location, *([self.data_folder] if self.data_folder else []), *parts, name)

    @property
    def manifest_folder(self) -> str:
        return join(self.location, "manifest")

    @property
    def index_folder(self) -> str:
        return join(self.location, "index")

    @property
    def statistics_folder(self) -> str:
        return join(self.location, "statistics")


def _data_folder(schema: Schema) -> str:
    """Returns the folder within the table's that partitions lie in; nothing for the table's own.

    Raises UnsupportedFormat for one that begins with a slash: Paimon takes it for a path from the root of the store.
    """
    folder = schema.options.get("data-file.path-directory", "")
    if folder.startswith("/"):
        raise UnsupportedFormat(
            f"{schema.where}: data-file.path-directory is {folder!r}, which is no folder of the table",
            hint="nothing was changed",
        )
    return folder


Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Extras = Mapping[int, tuple[str, ...]]
"""The extra files of those entries that have any, by the place of the entry. Nearly none have."""

ENTRY_COLUMNS = {
    "_VERSION": pa.int64(),
    "_KIND": pa.int64(),
    "_PARTITION": pa.binary(),
    "_BUCKET": pa.int64(),
    "_FILE._FILE_NAME": pa.string(),
    "_FILE._FILE_SIZE": pa.int64(),
    "_FILE._SCHEMA_ID": pa.int64(),
    "_FILE._LEVEL": pa.int64(),
    "_FILE._EXTRA_FILES": pa.binary(),
    "_FILE._EMBEDDED_FILE_INDEX": pa.binary(),
    "_FILE._EXTERNAL_PATH": pa.string(),
}
_LARGEST_BUCKET = (1 << 31) - 1
_LEVEL_STEP = np.int64(0x5851F42D4C957F2D)


class EntryFolders:
    """The folder of each entry: nearly all entries of a manifest share a few partitions and buckets."""

    def __init__(self, found: pa.RecordBatch, layout: Layout) -> None:
        partitions = required(found, "_PARTITION").dictionary_encode()
        buckets = required(found, "_BUCKET").to_numpy()
        if np.any(np.abs(buckets) > _LARGEST_BUCKET):
            raise UnreadableMetadata("an entry's _BUCKET is no number of 32 bits", hint=REPAIR)
        lowest = int(buckets.min(initial=0))
        span = int(buckets.max(initial=0)) - lowest + 1
        codes = partitions.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        both = pa.array(codes * span + (buckets - lowest)).dictionary_encode()
        values = partitions.dictionary.to_pylist()
        self.places = both.indices.to_numpy(zero_copy_only=False)
        self.pairs = [(values[each // span], each % span + lowest) for each in both.dictionary.to_pylist()]
        self._layout = layout

    def folders(self) -> pa.Array:
        named = pa.array([self._layout.bucket_folder(*pair) for pair in self.pairs], pa.string())
        return named.take(pa.array(self.places))

    def digests(self) -> Numbers:
        said = np.array([digest(partition, b"%d" % bucket) for partition, bucket in self.pairs], dtype=np.int64)
        each: Numbers = said[self.places]
        return each


def folds_of(found: pa.RecordBatch, places: EntryFolders, extras: Extras) -> Numbers:
    """Returns a digest of what identifies each entry beside its path: partition, bucket, level, extra files, index.

    Paimon writes an upgrade as a deletion at one level and an addition at another, of one file: these must not cancel
    each other.
    """
    levels = pc.fill_null(found.column("_FILE._LEVEL"), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    folds: Numbers = places.digests() ^ (levels * _LEVEL_STEP)
    index = found.column("_FILE._EMBEDDED_FILE_INDEX")
    indexed = np.flatnonzero(index.is_valid().to_numpy(zero_copy_only=False)).tolist()
    for place in {*extras, *indexed}:
        folds[place] ^= _of_extras(extras.get(place, ()), index[place].as_py())
    return folds


def _of_extras(names: tuple[str, ...], embedded: bytes | None) -> int:
    return digest(*(name.encode() for name in names), embedded or b"") if names or embedded else 0


def digest(*parts: bytes) -> int:
    """Returns 64 bits; the parts are told apart by their lengths."""
    said = blake2b(digest_size=8)
    for part in parts:
        said.update(len(part).to_bytes(8, "little") + part)
    return int.from_bytes(said.digest(), "little", signed=True)


def extras_in(encoded: pa.Array) -> Extras:
    """Returns the extra files; that an entry has none is seen without decoding."""
    some = pc.fill_null(pc.not_equal(encoded, EMPTY), False)
    if not pc.any(some).as_py():
        return {}
    places = np.flatnonzero(some.to_numpy(zero_copy_only=False))
    found = {place: encoded_texts(encoded[place].as_py()) for place in places.tolist()}
    return {place: names for place, names in found.items() if names}


def owners_of(extras: Extras) -> Any:
    """Returns the place of the entry that each extra file belongs to."""
    return np.repeat(np.fromiter(extras, np.int64, len(extras)), [len(names) for names in extras.values()])


def or_external(keys: pa.Array, found: pa.RecordBatch, column: str) -> pa.Array:
    external = found.column(column)
    return keys if external.null_count == len(external) else pc.coalesce(external, keys)
