"""Opening snapshots and manifests: the only Icechunk code that runs on executors.

A snapshot names its manifests, and says of each how many bytes and references it has; a manifest names its chunks. What
a reference says is where its bytes end in the object: writers put each chunk into an object of its own, so that is the
object's size. Chunks inside of a manifest, and those in files of others, are no objects of the repository; where such a
file is a chunk, it is needed all the same.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from firnline.formats.columns import ROW_SCHEMA, identities, nothing_named
from firnline.formats.damage import named
from firnline.formats.icechunk import names
from firnline.formats.icechunk.ids import letters_of
from firnline.formats.icechunk.reading.manifest import ChunkRefs, ManifestFile, read_manifest
from firnline.formats.icechunk.reading.snapshot import read_snapshot
from firnline.model.files import File, FileKind
from firnline.model.locations import bare_path, join
from firnline.ports.expanding import EXPECTS, Expanded, Together, joined
from firnline.ports.stores import Get, shared

_ROWS = ROW_SCHEMA.append(pa.field(EXPECTS, pa.int64()))
_NAMED_CONTAINER = "vcc://"


@dataclass(frozen=True, slots=True)
class IcechunkExpand:
    """Expands snapshots into manifests, and manifests into chunks. Any number of repositories are served by one."""

    store: Get

    @property
    def order(self) -> tuple[FileKind, ...]:
        return (FileKind.SNAPSHOT, FileKind.MANIFEST)

    @property
    def folds(self) -> bool:
        return False

    def share(self, parts: int) -> IcechunkExpand:
        return IcechunkExpand(shared(self.store, parts))

    def __call__(self, units: Sequence[File], together: Together = map) -> Expanded:
        if not units:
            return nothing_named()
        return joined(([number], each) for number, each in enumerate(together(self._opened, units)))

    def _opened(self, unit: File) -> Expanded:
        with named(unit.kind, unit.key):
            data = self.store.get(unit.key)
            below = _manifests(unit, data) if unit.kind is FileKind.SNAPSHOT else _chunks(unit, data)
        rows = pa.concat_batches([_itself(unit, len(data)), below])
        return Expanded(rows, np.zeros(len(rows), np.int64))


def _itself(unit: File, size: int) -> pa.RecordBatch:
    return _rows(pa.array([unit.key]), pa.array([size]), unit.kind, opens=False)


def _manifests(unit: File, data: bytes) -> pa.RecordBatch:
    folder, name = _place(unit)
    said = read_snapshot(data, name).manifests
    keys = pa.array([join(folder, names.MANIFESTS, each.id) for each in said], pa.string())
    sizes, refs = ([getattr(each, what) for each in said] for what in ("size", "refs"))
    return _rows(keys, pa.array(sizes, pa.int64()), FileKind.MANIFEST, opens=True, expects=pa.array(refs, pa.int64()))


def _chunks(unit: File, data: bytes) -> pa.RecordBatch:
    folder, name = _place(unit)
    size = len(data) if unit.size is None else unit.size
    found = read_manifest(data, ManifestFile(name, size, unit.expects))
    own = _rows(chunk_keys(folder, found), pa.array(found.ends), FileKind.CHUNK, opens=False)
    return pa.concat_batches([own, _lent(folder, found.lent)]) if found.lent else own


def _lent(folder: str, locations: Set[str]) -> pa.RecordBatch:
    """Returns what virtual references lead to that may be a chunk: of this repository, by whatever name its folder has
    there, or of another one.

    What a container's name stands for is told by each reader, so such a location may always be of this repository.
    """
    home = join(folder, names.CHUNKS)
    ends = sorted((each, *each.rsplit("/", 1)) for each in locations)
    keys = [join(home, name) if _is_home(place, home) else each for each, place, name in ends]
    return _rows(pa.array(keys, pa.string()), pa.nulls(len(keys), pa.int64()), FileKind.VIRTUAL, opens=False)


def _is_home(place: str, home: str) -> bool:
    return place.startswith(_NAMED_CONTAINER) or bare_path(place) == bare_path(home)


def chunk_keys(folder: str, found: ChunkRefs) -> pa.Array:
    """Returns the key of each chunk. All names have one length, so the column is made of one piece of memory."""
    stem = np.frombuffer(join(folder, names.CHUNKS, "").encode(), np.uint8)
    letters = letters_of(found.ids)
    whole = np.empty((len(letters), len(stem) + letters.shape[1]), np.uint8)
    whole[:, : len(stem)], whole[:, len(stem) :] = stem, letters
    offsets = np.arange(len(whole) + 1, dtype=np.int64) * whole.shape[1]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(whole)]
    return pa.Array.from_buffers(pa.large_string(), len(whole), buffers).cast(pa.string())


def _place(unit: File) -> tuple[str, str]:
    """Returns the repository's folder and the unit's name."""
    above, _, name = unit.key.rpartition("/")
    return above.rpartition("/")[0], name


def _rows(keys: pa.Array, sizes: pa.Array, kind: FileKind, *, opens: bool, expects: Any = None) -> pa.RecordBatch:
    count = len(keys)
    said = pa.nulls(count, pa.int64()) if expects is None else expects
    kinds, units = pa.repeat(pa.scalar(kind.value), count), pa.repeat(pa.scalar(opens), count)
    return pa.record_batch([identities(keys), keys, sizes, kinds, units, said], schema=_ROWS)
