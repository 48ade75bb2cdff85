"""The format of a folder with several tables, which is worked on as if it were one table without snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from firnline.errors import RefusedForSafety
from firnline.model.files import File, FileKind
from firnline.model.graph import Graph
from firnline.model.locations import identity
from firnline.model.removals import Removal
from firnline.model.snapshots import SnapshotId
from firnline.policy.native import LONGEST_AGE_MS, NativeRetention
from firnline.ports.expanding import Expand
from firnline.ports.formats import Amendment, Capabilities, Edited, FenceKind, Formats, State, UndoWindow
from firnline.ports.listings import WrittenFolder


@dataclass(frozen=True, slots=True)
class FolderFormat:
    """The format of such a folder: it names nothing itself, and what lies in it may be of any format."""

    formats: Formats

    @property
    def name(self) -> str:
        return "folder"

    @property
    def expand(self) -> Expand:
        return self.formats.expand

    @property
    def purge_order(self) -> tuple[FileKind, ...]:
        return ()

    @property
    def unique_names(self) -> bool:
        return False

    @property
    def paths_follow_folder(self) -> bool:
        return False

    def load(self, table: str, metadata_location: str) -> State:
        return State(
            table=table,
            format=self.name,
            location=metadata_location,
            uuid=f"folder-{uuid5(NAMESPACE_URL, identity(metadata_location))}",
            fence="",
            graph=Graph([]),
            current=None,
            refs={},
            native=NativeRetention(LONGEST_AGE_MS, 1),
            capabilities=Capabilities(FenceKind.NONE, UndoWindow.NONE),
            properties={},
            document={},
            owned=(metadata_location,),
        )

    def metadata_files(self, state: State) -> Iterator[str]:
        return iter(())

    def places(self, state: State) -> tuple[WrittenFolder, ...]:
        return ()

    def table_of(self, key: str) -> State | None:
        return self.formats.table_of(key)

    def written_ms(self, state: State) -> int:
        return 0

    def entries(self, state: State) -> int:
        return 0

    def snapshot_objects(self, state: State) -> Iterator[Mapping[str, Any]]:
        return iter(())

    def roots(self, state: State) -> Iterator[tuple[SnapshotId, File]]:
        return iter(())

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
        raise no_table(state.location)

    def restore(self, state: State, removal: Removal, now_ms: int, *, amendment: Amendment | None = None) -> Edited:
        raise no_table(state.location)

    def amend(self, state: State, amendment: Amendment, now_ms: int) -> Edited:
        raise no_table(state.location)

    def with_removal(self, state: State, removal: Removal) -> State:
        return state

    def part_of(self, removal: Removal, snapshots: Set[SnapshotId]) -> Removal:
        return Removal()


def no_table(location: str) -> RefusedForSafety:
    return RefusedForSafety(f"{location} is a folder, not a table", hint="name one table")
