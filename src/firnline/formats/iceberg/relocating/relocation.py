"""Which files of a table name others, in which order they go to another place, and what they are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from firnline.formats.damage import named
from firnline.formats.iceberg.relocating.comparing import says_the_same
from firnline.formats.iceberg.relocating.lists import read_list
from firnline.formats.iceberg.relocating.manifests import read_manifest
from firnline.formats.iceberg.relocating.naming import MovedPaths, NamingFile
from firnline.formats.iceberg.relocating.positions import read_positions
from firnline.formats.iceberg.relocating.there import SizesThere
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


@dataclass(frozen=True, slots=True)
class IcebergRelocation:
    """Rewrites what names other files. `target` is asked for the sizes of what was rewritten before."""

    place: Place
    target: Head
    _there: SizesThere = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_there", SizesThere(self.target))

    def __reduce__(self) -> tuple[object, ...]:
        return IcebergRelocation, (self.place, self.target)  # without what is known: it may be much

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

    @property
    def leaves(self) -> frozenset[FileKind]:
        return frozenset((*self.order[0], *self.order[1]))

    def relocated(self, kind: FileKind, key: str, data: bytes) -> bytes:
        with named(kind, key):
            found = _READ[kind](data)
            paths = MovedPaths(self.place)
            places = {path: paths.of(path) for path in found.sized}
        sizes = self._there.sizes(places)  # what is missing there is no damage of this file
        with named(kind, key):
            return found.written(paths, sizes)

    def same(self, kind: FileKind, one: bytes, other: bytes) -> bool:
        return says_the_same(one, other)

    def share(self, parts: int) -> IcebergRelocation:
        return IcebergRelocation(self.place, shared(self.target, parts))
