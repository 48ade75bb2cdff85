"""Paimon behind the TableFormat port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from firnline.errors import UnsupportedFormat
from firnline.formats.paimon import edit
from firnline.formats.paimon.expand import PaimonExpand
from firnline.formats.paimon.folder import Files, read_folder
from firnline.formats.paimon.objects import snapshot_objects
from firnline.formats.paimon.pinned import as_it_was, place_of, version_name
from firnline.formats.paimon.roots import roots_of
from firnline.formats.paimon.shrink import consequences_of
from firnline.formats.paimon.state import files_in, state_of
from firnline.formats.paimon.tags import amended
from firnline.model.files import File, FileKind
from firnline.model.locations import join
from firnline.model.snapshots import SnapshotId
from firnline.ports.formats import Amendment, Consequences, Edited, State
from firnline.ports.listings import Place
from firnline.ports.stores import Read

_PURGE_ORDER = (
    FileKind.DATA,
    FileKind.CHANGELOG,
    FileKind.MANIFEST,
    FileKind.MANIFEST_LIST,
    FileKind.CHANGES_LIST,
    FileKind.INDEX,
    FileKind.DELETION_VECTORS,
    FileKind.INDEX_MANIFEST,
    FileKind.STATISTICS,
    FileKind.METADATA,
)


@dataclass(frozen=True, slots=True)
class PaimonFormat:
    """Reads Paimon tables through any store, and edits what it read. A table's place is its folder."""

    store: Read

    @property
    def name(self) -> str:
        return "paimon"

    @property
    def expand(self) -> PaimonExpand:
        return PaimonExpand(self.store)

    @property
    def purge_order(self) -> tuple[FileKind, ...]:
        return _PURGE_ORDER

    def load(self, table: str, metadata_location: str) -> State:
        """Returns the table as it is, or one version of it. Raises TableMoved where that is not to be had any more."""
        place, version = place_of(metadata_location)
        files = read_folder(self.store, place)
        return state_of(files if version is None else as_it_was(files, place, version), table, place)

    def metadata_files(self, state: State) -> Iterator[str]:
        return (join(state.location, path) for path in files_in(state))

    def places(self, state: State) -> tuple[Place, ...]:
        raise _not_searched(state.table)

    def table_of(self, key: str) -> State | None:
        raise _not_searched(key)

    def written_ms(self, state: State) -> int:
        return max((each.timestamp_ms for each in state.graph), default=0)

    def expire(
        self,
        state: State,
        snapshots: Set[SnapshotId],
        refs: Set[str],
        now_ms: int,
        *,
        clean: bool = False,
        amendment: Amendment | None = None,
    ) -> Edited:
        files, removal = edit.expired(state, snapshots, refs, amendment or Amendment(), now_ms)
        return _edited(files, state, removal=removal)

    def restore(
        self, state: State, removal: Mapping[str, Any], now_ms: int, *, amendment: Amendment | None = None
    ) -> Edited:
        edit.refuse_gap(state, removal)
        files, left_alone = edit.restored(state, removal, amendment or Amendment(), now_ms)
        return _edited(files, state, left_alone=left_alone)

    def amend(self, state: State, amendment: Amendment, now_ms: int) -> Edited:
        return _edited(amended(files_in(state), state, amendment, now_ms), state)

    def with_removal(self, state: State, removal: Mapping[str, Any]) -> State:
        return state_of(edit.with_all(files_in(state), removal), state.table, state.location)

    def snapshot_objects(self, state: State) -> Iterator[Mapping[str, Any]]:
        return snapshot_objects(state)

    def declared_history(self, state: State) -> str | None:
        return None

    def consequences(self, state: State, expired: Set[SnapshotId], refs: Set[str]) -> Consequences:
        return consequences_of(state, expired, refs)

    def roots(self, state: State) -> Iterator[tuple[SnapshotId, File]]:
        return roots_of(state)


def _edited(
    files: Files, state: State, removal: Mapping[str, Any] | None = None, left_alone: tuple[str, ...] = ()
) -> Edited:
    return Edited(b"", version_name(files, state.location), {"files": files}, removal or {}, left_alone)


def _not_searched(what: str) -> UnsupportedFormat:
    return UnsupportedFormat(
        f"{what}: this version does not search Paimon tables for orphans", hint="nothing was changed"
    )
