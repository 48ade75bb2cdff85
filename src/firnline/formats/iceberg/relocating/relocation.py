"""Which files of a table name others, in which order they go to another place, and what they are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from firnline.formats.damage import named
from firnline.formats.iceberg.relocating.comparing import says_the_same
from firnline.formats.iceberg.relocating.lists import read_list
from firnline.formats.iceberg.relocating.manifests import read_manifest
from firnline.formats.iceberg.relocating.naming import NamingFile, Sizes
from firnline.formats.iceberg.relocating.positions import read_positions
from firnline.formats.iceberg.relocating.vectors import read_vectors
from firnline.model.files import FileKind
from firnline.ports.relocating import Place
from firnline.ports.stores import Head, shared

_READ: Final[Mapping[FileKind, Callable[[bytes], NamingFile]]] = {
    FileKind.POSITION_DELETES: read_positions,
    FileKind.DELETION_VECTORS: read_vectors,
    FileKind.MANIFEST: read_manifest,
    FileKind.MANIFEST_LIST: read_list,
}
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class IcebergRelocation:
    """Rewrites what names other files. `target` is asked for the sizes of what was rewritten before."""

    place: Place
    target: Head

    @property
    def order(self) -> tuple[tuple[FileKind, ...], ...]:
        return (
            (FileKind.DATA, FileKind.EQUALITY_DELETES, FileKind.STATISTICS, FileKind.PARTITION_STATISTICS),
            (FileKind.POSITION_DELETES, FileKind.DELETION_VECTORS),
            (FileKind.MANIFEST,),
            (FileKind.MANIFEST_LIST,),
        )

    @property
    def rewritten(self) -> frozenset[FileKind]:
        return frozenset(_READ)

    def relocated(self, kind: FileKind, key: str, data: bytes) -> bytes:
        with named(kind, key):
            found = _READ[kind](data)
            places = {path: self.place.place(path) for path in found.sized}
        sizes = self._sizes(places)  # what is missing there is no damage of this file
        with named(kind, key):
            return found.written(self.place, sizes)

    def same(self, kind: FileKind, one: bytes, other: bytes) -> bool:
        return says_the_same(one, other)

    def share(self, parts: int) -> IcebergRelocation:
        return IcebergRelocation(self.place, shared(self.target, parts))

    def _sizes(self, places: Mapping[str, str]) -> Sizes:
        if len(places) < 2:
            return dict(zip(places, map(self._size, places.values()), strict=True))
        with ThreadPoolExecutor(min(_AT_ONCE, len(places))) as pool:
            return dict(zip(places, pool.map(self._size, places.values()), strict=True))

    def _size(self, key: str) -> int:
        return self.target.head(key).size
