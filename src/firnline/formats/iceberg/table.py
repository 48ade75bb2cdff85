"""Iceberg behind the TableFormat port."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from firnline.formats.iceberg.document import read_document
from firnline.formats.iceberg.expand import IcebergExpand
from firnline.formats.iceberg.roots import roots_of
from firnline.formats.iceberg.state import state_of
from firnline.model.files import File, FileKind
from firnline.model.snapshots import SnapshotId
from firnline.ports.formats import State
from firnline.ports.stores import Get

_PURGE_ORDER = (
    FileKind.DATA,
    FileKind.POSITION_DELETES,
    FileKind.EQUALITY_DELETES,
    FileKind.DELETION_VECTORS,
    FileKind.MANIFEST,
    FileKind.MANIFEST_LIST,
    FileKind.STATISTICS,
    FileKind.PARTITION_STATISTICS,
)


@dataclass(frozen=True, slots=True)
class IcebergFormat:
    """Reads Iceberg tables through any store."""

    store: Get

    @property
    def name(self) -> str:
        return "iceberg"

    @property
    def expand(self) -> IcebergExpand:
        return IcebergExpand(self.store)

    @property
    def purge_order(self) -> tuple[FileKind, ...]:
        return _PURGE_ORDER

    def load(self, table: str, metadata_location: str) -> State:
        return state_of(read_document(self.store, metadata_location), table, metadata_location)

    def roots(self, state: State) -> Iterator[tuple[SnapshotId, File]]:
        return roots_of(state)
