"""Paimon behind the TableFormat port."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from firnline.errors import NoSuchTable, UnsupportedFormat
from firnline.formats.paimon import names
from firnline.formats.paimon.committing.present import misleading_hints
from firnline.formats.paimon.editing import expiry
from firnline.formats.paimon.editing.dropping import dropping
from firnline.formats.paimon.editing.restore import refuse_gap, restored, with_all
from firnline.formats.paimon.editing.tags import amended
from firnline.formats.paimon.editing.writers import expiry_off, unaware
from firnline.formats.paimon.reading.folder import Files, as_it_was, place_of, read_settled, version_name, written_times
from firnline.formats.paimon.reading.objects import snapshot_objects
from firnline.formats.paimon.reading.ranges import consequences_of
from firnline.formats.paimon.reading.state import files_in, modified_in, state_of, subject_of
from firnline.formats.paimon.walking.definitions import undefined_in
from firnline.formats.paimon.walking.expand import PaimonExpand
from firnline.formats.paimon.walking.places import emptied_of, places_of
from firnline.formats.paimon.walking.roots import entries_of, roots_of
from firnline.model.files import File, FileKind
from firnline.model.locations import join
from firnline.model.removals import Removal
from firnline.model.snapshots import MAIN, SnapshotId
from firnline.ports.abilities import Consequences, Dropping, Subject, Undefined
from firnline.ports.formats import Amendment, Edited, State
from firnline.ports.listings import WrittenFolder
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
    FileKind.UNFINISHED,
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

    @property
    def unique_names(self) -> bool:
        return True

    @property
    def paths_follow_folder(self) -> bool:
        return True

    def load(self, table: str, metadata_location: str) -> State:
        """Returns the table as it is, or one version of it. Raises TableMoved where that is not to be had any more."""
        place, version = place_of(metadata_location)

        def state(files: Files) -> State:
            found = files if version is None else as_it_was(files, place, version)
            return state_of(found, table, place, written_times(self.store, place, found))

        return read_settled(self.store, place, state)

    def metadata_files(self, state: State) -> Iterator[str]:
        return (join(state.location, path) for path in files_in(state))

    def subject_of(self, state: State, key: str) -> Subject | None:
        return subject_of(state, key)

    def places(self, state: State) -> tuple[WrittenFolder, ...]:
        return places_of(state)

    def emptied(self, state: State, folders: Iterable[str]) -> list[str]:
        return emptied_of(state, folders)

    def table_of(self, key: str) -> State | None:
        folder = names.table_of_schema(key)
        if folder is None:
            raise UnsupportedFormat(f"{key} belongs to a table of another format", hint="nothing was changed")
        try:
            return self.load(folder, folder)
        except NoSuchTable:
            return None

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
        side_objects: Set[str] = frozenset(),
    ) -> Edited:
        files, removal = expiry.expired(state, snapshots, refs, side_objects, amendment or Amendment(), now_ms)
        return _edited(files, state, removal=removal)

    def restore(self, state: State, removal: Removal, now_ms: int, *, amendment: Amendment | None = None) -> Edited:
        refuse_gap(state, removal.payload)
        files, left_alone = restored(state, removal.payload, amendment or Amendment(), now_ms)
        return _edited(files, state, left_alone=left_alone)

    def amend(self, state: State, amendment: Amendment, now_ms: int) -> Edited:
        return _edited(amended(files_in(state), state, amendment, now_ms), state)

    def with_removal(self, state: State, removal: Removal) -> State:
        files = with_all(files_in(state), removal.payload)
        return state_of(files, state.table, state.location, modified_in(state))

    def part_of(self, removal: Removal, snapshots: Set[SnapshotId]) -> Removal:
        files = [each for each in removal.payload.get("files", ()) if str(each.get("snapshot-id")) in snapshots]
        gone = tuple(each for each in removal.snapshots if str(each["snapshot-id"]) in snapshots)
        return Removal(gone, payload={"files": files})

    def entries(self, state: State) -> int:
        return entries_of(self.store, state)

    def snapshot_objects(self, state: State) -> Iterator[Mapping[str, Any]]:
        return snapshot_objects(state)

    def consequences(self, state: State, expired: Set[SnapshotId], refs: Set[str], now_ms: int | None) -> Consequences:
        return consequences_of(state, expired, refs, now_ms)

    def expiry_off(self, state: State) -> Mapping[str, str]:
        return expiry_off(state)

    def unaware(self, state: State) -> list[str]:
        return unaware(state)

    def misleading(self, state: State) -> Iterator[tuple[str, str]]:
        return ((join(state.location, path), problem) for path, problem in misleading_hints(files_in(state)))

    def undefined(self, state: State) -> Iterator[Undefined]:
        return undefined_in(state, self.store)

    def branch_of(self, snapshot: SnapshotId) -> str:
        return names.branch_of_id(snapshot) or MAIN

    def dropping(self, state: State, refs: Set[str]) -> Dropping:
        return dropping(state, refs)

    def roots(self, state: State) -> Iterator[tuple[SnapshotId, File]]:
        return roots_of(state)


def _edited(files: Files, state: State, removal: Removal | None = None, left_alone: tuple[str, ...] = ()) -> Edited:
    return Edited(b"", version_name(files, state.location), {"files": files}, removal or Removal(), left_alone)
