"""What a table format tells firnline: its state, its roots and how a unit expands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from firnline.model.files import File, FileKind
from firnline.model.graph import Graph
from firnline.model.holds import Hold, Pin
from firnline.model.removals import Removal
from firnline.model.snapshots import Ref, SnapshotId
from firnline.policy.native import NativeRetention
from firnline.ports.expanding import Expand
from firnline.ports.listings import WrittenFolder


class FenceKind(StrEnum):
    """What a commit is made against."""

    SWAP = "cas"
    NONE = "none"


class UndoWindow(StrEnum):
    AFTER_COMMIT = "after commit"
    BEFORE_COMMIT = "before commit"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What this table allows."""

    fence: FenceKind
    undo: UndoWindow


@dataclass(frozen=True, slots=True)
class State:
    """One read of a table: everything that `decide` and the survey start from.

    `document` is the format's own metadata, untouched; only the format looks inside. `fence` names the exact
    version that was read, `uuid` the table itself: a re-created table of the same name is another table.

    `original` is where a table of another format lies whose writers keep this one's metadata over their own files: this
    is a mirror of that one, which alone says what is needed.
    """

    table: str
    format: str
    location: str
    uuid: str
    fence: str
    graph: Graph
    current: SnapshotId | None
    refs: Mapping[str, Ref]
    native: NativeRetention
    capabilities: Capabilities
    properties: Mapping[str, str]
    document: Mapping[str, Any] = field(repr=False)
    owned: tuple[str, ...] = ()
    holds: tuple[Hold, ...] = ()
    pins: tuple[Pin, ...] = ()
    forbidden: str | None = None
    original: str | None = None

    def named(self, version: str) -> SnapshotId:
        """Returns the snapshot that a ref's name means, or an id; whether there is one is not asked."""
        return self.refs[version].snapshot if version in self.refs else SnapshotId(version)


@dataclass(frozen=True, slots=True)
class Edited:
    """The next version of a table's metadata, not yet committed: the document, and the bytes that say it.

    `removal` is what was taken out, and all that is needed to put it back. `left_alone` names refs that a
    restore did not touch because they were created since. `forgotten` are metadata files that fall off the log.
    """

    data: bytes
    location: str
    document: Mapping[str, Any] = field(repr=False)
    removal: Removal = field(default_factory=Removal)
    left_alone: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Amendment:
    """Refs and table properties to write, and names of either to remove.

    `expired_path` is for the document's own field for the history of expired snapshots, where the format has one.
    """

    refs: tuple[Ref, ...] = ()
    refs_gone: frozenset[str] = frozenset()
    properties: Mapping[str, str] = field(default_factory=dict)
    properties_gone: frozenset[str] = frozenset()
    expired_path: str | None = None

    @property
    def is_empty(self) -> bool:
        written = self.refs or self.refs_gone or self.properties or self.properties_gone
        return not written and self.expired_path is None


class EditTable(Protocol):
    """The write side of a format: pure edits of a state's document. Committing them is the catalog's part."""

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
        """Returns the table without these, and with the amendment in the same version.

        `clean` also takes out schemas and specs that nothing uses then. `side_objects` are the ids of what else goes;
        of all that `consequences` names, nothing but these.

        Raises RefusedForSafety where a ref that stays needs one of the snapshots.
        """
        ...

    def restore(self, state: State, removal: Removal, now_ms: int, *, amendment: Amendment | None = None) -> Edited:
        """Returns the table with a removal put back, and with the amendment in the same version.

        A ref that was created since is left as it is.
        """
        ...

    def amend(self, state: State, amendment: Amendment, now_ms: int) -> Edited:
        """Returns the table with refs and properties written or gone, in one version."""
        ...

    def with_removal(self, state: State, removal: Removal) -> State:
        """Returns the state as if a removal had been put back: for walking what an undo would bring back."""
        ...

    def part_of(self, removal: Removal, snapshots: Set[SnapshotId]) -> Removal:
        """Returns what of a removal belongs to these snapshots: themselves, and all that names them; no refs."""
        ...


class TableFormat(EditTable, Protocol):
    """What every table format has. What only some have are protocols of their own: see `ports.abilities`."""

    @property
    def name(self) -> str: ...

    @property
    def expand(self) -> Expand: ...

    @property
    def purge_order(self) -> tuple[FileKind, ...]:
        """Every kind of file, in the order of deletion: what names others goes after what it names.

        So a purge that is cut short never leaves a file that nothing names any more.
        """
        ...

    @property
    def unique_names(self) -> bool:
        """Whether writers never give a name twice: then a file that has the name of a needed one, in whatever folder,
        may be that one. Where a format derives folders from values, what it derives may not be what a writer wrote.
        """
        ...

    @property
    def paths_follow_folder(self) -> bool:
        """Whether all paths of a table follow from its folder's: its units lie there, and the folder must have one
        name, by whatever links it was reached. What one process wrote down as garbage, another compares with its own.
        """
        ...

    def load(self, table: str, metadata_location: str) -> State:
        """Returns the table's state from one read. Raises UnreadableMetadata or UnsupportedFormat."""
        ...

    def metadata_files(self, state: State) -> Iterator[str]:
        """Yields the metadata objects that the table names itself: the current one and those its log remembers."""
        ...

    def places(self, state: State) -> tuple[WrittenFolder, ...]:
        """Returns the folders that the table's writers use, with the names that they give their files there."""
        ...

    def table_of(self, key: str) -> State | None:
        """Returns the table that a metadata object of this format speaks of; None where it is gone. Raises where nobody
        can tell.
        """
        ...

    def written_ms(self, state: State) -> int:
        """Returns when the table's metadata was written, by its writer's clock: later ones say later times."""
        ...

    def entries(self, state: State) -> int:
        """Returns about how many files a walk will meet, those of the largest snapshot at least: as the metadata tells,
        or a few requests. 0 where nothing tells.
        """
        ...

    def snapshot_objects(self, state: State) -> Iterator[Mapping[str, Any]]:
        """Yields the table's snapshots as Iceberg writes a Snapshot in JSON, with whatever other fields they have."""
        ...

    def roots(self, state: State) -> Iterator[tuple[SnapshotId, File]]:
        """Yields everything that the table's own document names, each with the snapshot it belongs to.

        The snapshot may be one that the table does not have any more; what belongs to it still counts as needed.
        """
        ...


class Formats(Protocol):
    """Every known format at once, on one store: for use cases that meet the metadata of any table."""

    @property
    def expand(self) -> Expand:
        """Opens units of which nothing but the store is known: by the format whose units may lie anywhere."""
        ...

    def of(self, state: State) -> TableFormat:
        """Returns the format of a table."""
        ...

    def table_of(self, document: str) -> State | None:
        """Returns the table that a metadata object of any format speaks of; None where it is gone.

        Raises UnsupportedFormat for a format that is not known, and where nobody can tell.
        """
        ...

    def dropped_table(self, document: str) -> State | None:
        """Returns the same. Raises UnsupportedFormat for a table that is there as long as its folder is: no catalog
        could have dropped it.
        """
        ...

    def folder_of(self, document: str) -> str:
        """Returns the folder of the table that a metadata object belongs to, by its name alone."""
        ...
