"""Icechunk behind the TableFormat port."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from firnline.errors import NoSuchTable, RefusedForSafety, TableMoved, UnsupportedFormat
from firnline.formats.icechunk import editing
from firnline.formats.icechunk.committing.properties import read_properties
from firnline.formats.icechunk.expiring.ancestry import RefHistory
from firnline.formats.icechunk.expiring.drawing import drawn
from firnline.formats.icechunk.expiring.fitting import fitted
from firnline.formats.icechunk.logs import unreadable_logs
from firnline.formats.icechunk.names import MANIFESTS, table_folder
from firnline.formats.icechunk.objects import snapshot_objects
from firnline.formats.icechunk.reading.detection import has_repository
from firnline.formats.icechunk.reading.repository import read_repository
from firnline.formats.icechunk.state import metadata_of, ref_in, repository_in, state_of, subject_of
from firnline.formats.icechunk.store_times import clock_faults_of, refuse_doubtful_cut
from firnline.formats.icechunk.versions import place_of
from firnline.formats.icechunk.walking.expand import IcechunkExpand
from firnline.formats.icechunk.walking.places import FOLDERS, backups_of, places_of
from firnline.formats.icechunk.walking.roots import entries_of, roots_of
from firnline.model.drawing import HistoryDrawing
from firnline.model.files import File, FileKind
from firnline.model.locations import join
from firnline.model.removals import Removal
from firnline.model.snapshots import SnapshotId
from firnline.policy.decide import Decision
from firnline.ports.abilities import ClockFault, Dropping, Subject
from firnline.ports.formats import Amendment, Edited, State
from firnline.ports.listings import WrittenFolder
from firnline.ports.stores import Read


@dataclass(frozen=True, slots=True)
class IcechunkFormat:
    """Reads repositories through any store, and edits what it read. A repository's place is its folder. The operator
    vouches for the times of `trusted` snapshots; `*` among them stands for all.
    """

    store: Read
    trusted: frozenset[SnapshotId] = frozenset()

    @property
    def name(self) -> str:
        return "icechunk"

    @property
    def expand(self) -> IcechunkExpand:
        return IcechunkExpand(self.store)

    @property
    def purge_order(self) -> tuple[FileKind, ...]:
        return (FileKind.BACKUP, *FOLDERS.values(), FileKind.METADATA)

    @property
    def unique_names(self) -> bool:
        """No: a snapshot and its transaction log have one name, in two folders."""
        return False

    @property
    def paths_follow_folder(self) -> bool:
        return True

    @property
    def missing_means(self) -> str:
        return "a manifest may be damaged, and name another chunk than its writer did"

    @property
    def unheeded(self) -> str:
        return "firnline removes nothing; the library's own expiry and collection do not read this note"

    @property
    def outlived(self) -> str:
        return "a session that is open for longer may commit names of chunks that are gone (reindex_array, shift_array)"

    def load(self, table: str, metadata_location: str) -> State:
        """Returns the repository as it is. Raises TableMoved where another version was named: none is kept."""
        place, version = place_of(metadata_location)
        if version is None:
            return self._read(table, place)
        try:
            state = self._read(table, place)
        except NoSuchTable:
            self._refuse_lookalike(metadata_location)
            raise
        if place_of(state.fence)[1] != version:
            self._refuse_lookalike(metadata_location)
            raise TableMoved(f"{place} changed while it was being read", hint="ask again")
        return state

    def _read(self, table: str, place: str) -> State:
        return state_of(read_repository(self.store, place), read_properties(self.store, place), table)

    def _refuse_lookalike(self, location: str) -> None:
        """Raises UnsupportedFormat for a repository whose folder is called like a version of another one: a search
        that took it for that one would find nothing there, and nobody to need its files.
        """
        if has_repository(self.store, location):
            raise UnsupportedFormat(
                f"the folder {location} is called like a version of the repository {place_of(location)[0]}",
                hint="nothing was changed; give it a name that does not end in # and 32 hexadecimal digits",
            )

    def metadata_files(self, state: State) -> Iterator[str]:
        return metadata_of(repository_in(state))

    def subject_of(self, state: State, key: str) -> Subject | None:
        return subject_of(state, key)

    def places(self, state: State) -> tuple[WrittenFolder, ...]:
        return places_of(state.location)

    def unit_folders(self, state: State) -> tuple[str, ...]:
        return (join(state.location, MANIFESTS),)

    def backups(self, state: State) -> WrittenFolder:
        return backups_of(state.location)

    def table_of(self, key: str) -> State | None:
        folder = table_folder(key)
        if folder is None:
            raise UnsupportedFormat(f"{key} belongs to a table of another format", hint="nothing was changed")
        if not has_repository(self.store, folder):
            return None
        try:
            return self.load(folder, folder)
        except NoSuchTable:
            return None

    def written_ms(self, state: State) -> int:
        return max(each.timestamp_ms for each in state.graph)

    def fitted(self, state: State, decision: Decision, open_since_ms: int) -> Decision:
        repository = repository_in(state)
        gone = [ref_in(state, name) for name in decision.expired_refs]
        return fitted(decision, RefHistory.of(repository), gone, repository.spec, open_since_ms * 1000)

    def refuse_doubtful(self, state: State, snapshots: Set[SnapshotId]) -> None:
        refuse_doubtful_cut(self.store, repository_in(state), snapshots, self.trusted)

    def unreadable_logs(self, state: State) -> Iterator[tuple[str, str]]:
        return unreadable_logs(self.store, repository_in(state))

    def clock_faults(self, state: State) -> Iterator[ClockFault]:
        return clock_faults_of(self.store, repository_in(state))

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
        return editing.expired(state, snapshots, refs, amendment or Amendment())

    def restore(self, state: State, removal: Removal, now_ms: int, *, amendment: Amendment | None = None) -> Edited:
        """Raises RefusedForSafety: the library can take snapshots out of a history, and cannot put any back."""
        raise RefusedForSafety(
            f"the history of {state.table} cannot be put back: Icechunk has no way to do that",
            hint="what a branch or tag led to is there until it is purged; nothing was changed",
        )

    def amend(self, state: State, amendment: Amendment, now_ms: int) -> Edited:
        return editing.amended(state, amendment)

    def with_removal(self, state: State, removal: Removal) -> State:
        return editing.with_removal(state, removal)

    def part_of(self, removal: Removal, snapshots: Set[SnapshotId]) -> Removal:
        return editing.part_of(removal, snapshots)

    def drawing(self, state: State, snapshots: Set[SnapshotId], refs: Set[str]) -> HistoryDrawing:
        return drawn(editing.rewriting_of(state, snapshots, refs))

    def dropping(self, state: State, refs: Set[str]) -> Dropping:
        return editing.dropping(state, refs)

    def entries(self, state: State) -> int:
        return entries_of(self.store, repository_in(state))

    def snapshot_objects(self, state: State) -> Iterator[Mapping[str, Any]]:
        return snapshot_objects(repository_in(state))

    def roots(self, state: State) -> Iterator[tuple[SnapshotId, File]]:
        return roots_of(repository_in(state))
