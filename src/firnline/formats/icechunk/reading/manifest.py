"""Manifests: which chunks arrays have. Only a chunk with an id is an object of the repository: one that is written into
the manifest itself, or that lies in a file of others, is nothing that a collection could take. A file of others may be
a chunk, though, of this repository or of another (`locations.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from firnline.formats.icechunk.ids import WIDTH, Octets, name_of
from firnline.formats.icechunk.reading.damage import CorruptIcechunk
from firnline.formats.icechunk.reading.envelope import ObjectType, opened
from firnline.formats.icechunk.reading.flat import Field, FlatBuffer, FlatTables, Numbers, TableLayout, refuse_shared
from firnline.formats.icechunk.reading.locations import Unpacking, chunk_locations

_MANIFEST: Final = TableLayout(
    "Manifest",
    (
        Field("id", WIDTH, required=True),
        Field("arrays", required=True),
        Field("location_dictionary"),
        Field("compression_algorithm", 1),
        Field("extra", reserved=True),
    ),
)
_ARRAY: Final = TableLayout(
    "ArrayManifest",
    (Field("node_id", 8, required=True), Field("refs", required=True), Field("extra", reserved=True)),
)
_CHUNK_REF: Final = TableLayout(
    "ChunkRef",
    (
        Field("index", required=True),
        Field("inline"),
        Field("offset", 8),
        Field("length", 8),
        Field("chunk_id", WIDTH),
        Field("location"),
        Field("checksum_etag"),
        Field("checksum_last_modified"),
        Field("compressed_location"),
        Field("extra", reserved=True),
    ),
)
_BLOCK: Final = 1 << 16
"""References decoded at a time: what is computed on the way stays in the processor's cache."""


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """What a snapshot says of a manifest that it needs. `refs` is None where nobody asked the snapshot."""

    id: str
    size: int
    refs: int | None


@dataclass(frozen=True, slots=True)
class ChunkRefs:
    """The chunks that a manifest names. Of those that are objects of the repository the ids, a row each, and up to
    which byte each reference needs its object; of all others the numbers alone. `lent` is where virtual references lead
    that end in the name of a chunk.
    """

    ids: Octets
    ends: Numbers
    inline: int
    virtual: int
    lent: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.ids) + self.inline + self.virtual


def read_manifest(data: bytes, said: ManifestFile) -> ChunkRefs:
    """Returns what the manifest names. Raises CorruptIcechunk unless it is the one that a snapshot tells of, with as
    many bytes and as many references.
    """
    if len(data) != said.size:
        raise CorruptIcechunk(f"it has {len(data):,} bytes, a snapshot says {said.size:,}")
    root = FlatBuffer(opened(data, ObjectType.MANIFEST).body).root(_MANIFEST)
    if (own := name_of(root.rows("id", WIDTH).tobytes())) != said.id:
        raise CorruptIcechunk(f"it says that its id is {own}")
    found = _joined(_blocks(root), Unpacking.of(root))
    if said.refs is not None and len(found) != said.refs:
        raise CorruptIcechunk(f"it has {len(found):,} references, a snapshot says {said.refs:,}")
    return found


def _blocks(root: FlatTables) -> Iterator[FlatTables]:
    """Yields all references of all arrays, some at a time. Raises at the end where two of them share their bytes."""
    places, sizes = root.listed("arrays", _ARRAY).listed_at("refs"), list[Numbers]()
    for start in range(0, len(places), _BLOCK):
        block = root.others(places[start : start + _BLOCK], _CHUNK_REF)
        sizes.append(block.sizes)
        yield block
    refuse_shared(places, np.concatenate([np.empty(0, np.int64), *sizes]))


def _joined(blocks: Iterator[FlatTables], unpacking: Unpacking) -> ChunkRefs:
    ids, ends = [np.empty((0, WIDTH), np.uint8)], [np.empty(0, np.int64)]
    inline, virtual, lent = 0, 0, set[str]()
    for block in blocks:
        part = _decoded(block, unpacking)
        ids.append(part.ids)
        ends.append(part.ends)
        inline, virtual, lent = inline + part.inline, virtual + part.virtual, lent | part.lent
    return ChunkRefs(np.concatenate(ids), np.concatenate(ends), inline, virtual, frozenset(lent))


def _decoded(refs: FlatTables, unpacking: Unpacking) -> ChunkRefs:
    """Returns what these references name. Each is of exactly one kind; what it needs for that kind must be there, so
    that a reference to an object cannot pass for another kind.
    """
    native, inline = refs.has("chunk_id"), refs.has("inline")
    plain, packed = refs.has("location"), refs.has("compressed_location")
    if np.any(native.astype(np.int8) + inline + plain + packed != 1):
        raise CorruptIcechunk("a reference is of no kind, or of two")
    for field in ("index", "inline", "checksum_etag"):
        refs.vectors(field, 4 if field == "index" else 1)
    lent = chunk_locations(refs.vectors("location", 1), refs.vectors("compressed_location", 1), unpacking)
    owned = refs.picked(native)
    ends = owned.numbers("offset", "<u8") + owned.numbers("length", "<u8")
    if np.any(ends < 0):
        raise CorruptIcechunk("a reference ends beyond all that a chunk can hold")
    return ChunkRefs(owned.rows("chunk_id", WIDTH), ends, int(inline.sum()), int(plain.sum() + packed.sum()), lent)
