"""What a table format tells firnline: its state, its roots and how a unit expands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from firnline.model.files import File, FileKind
from firnline.model.graph import Graph
from firnline.model.holds import Hold, Pin
from firnline.model.snapshots import Ref, SnapshotId
from firnline.policy.native import NativeRetention
from firnline.ports.expanding import Expand
from firnline.ports.listings import WrittenFolder


class FenceKind(StrEnum):
    """What a commit is made against."""

    SWAP = "cas"
    REFS = "refs"
    NONE = "none"


class UndoWindow(StrEnum):
    AFTER_COMMIT = "after commit"
    BEFORE_COMMIT = "before commit"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What this table allows. `holes`: whether snapshots may go from the middle of the history."""

    fence: FenceKind
    undo: UndoWindow
    holes: bool


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


@dataclass(frozen=True, slots=True)
class Edited:
    """The next version of a table's metadata, not yet committed: the document, and the bytes that say it.

    `removal` is what was taken out, as JSON, and all that is needed to put it back. `left_alone` names refs that a
    restore did not touch because they were created since. `forgotten` are metadata files that fall off the log.
    """

    data: bytes
    location: str
    document: Mapping[str, Any] = field(repr=False)
    removal: Mapping[str, Any] = field(default_factory=dict)
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

        `clean` also takes out schemas and specs that nothing uses then. `beside` are the ids of what else goes; of all
        that `consequences` names, nothing but these.

        Raises RefusedForSafety where a ref that stays needs one of the snapshots.
        """
        ...

    def restore(
        self, state: State, removal: Mapping[str, Any], now_ms: int, *, amendment: Amendment | None = None
    ) -> Edited:
        """Returns the table with a removal put back, and with the amendment in the same version.

        A ref that was created since is left as it is.
        """
        ...

    def amend(self, state: State, amendment: Amendment, now_ms: int) -> Edited:
        """Returns the table with refs and properties written or gone, in one version."""
        ...

    def with_removal(self, state: State, removal: Mapping[str, Any]) -> State:
        """Returns the state as if a removal had been put back: for walking what an undo would bring back."""
        ...


@dataclass(frozen=True, slots=True)
class Subject:
    """What a metadata file alone tells of. `kind` is `snapshot`, with its id; `ref`, with its name; or that of a
    SideObject.
    """

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class SideObject:
    """What a table has beside snapshots and refs, and why it goes or stays: a changelog, a consumer."""

    kind: str
    name: str
    why: str
    time_ms: int | None = None

    @property
    def id(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Consequences:
    """What follows for a table when some snapshots expire.

    `released` are the owners, among those of `roots`, that need nothing any more. `tagged` are snapshots that stay and
    yet leave the table's own row of snapshots, with the tag that the commit makes to hold each. `going` and `staying`
    is what the table has beside them.
    """

    released: frozenset[str]
    tagged: Mapping[SnapshotId, str] = field(default_factory=dict)
    going: tuple[SideObject, ...] = ()
    staying: tuple[SideObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Dropping:
    """What goes with some refs: themselves with the refs below them, and the snapshots that nothing else holds.

    `seen` says of each by its name what it holds: a ref of the same name may be made again, and a number given again.
    """

    snapshots: frozenset[SnapshotId]
    refs: frozenset[str]
    seen: Mapping[str, str]


class Undefined(NamedTuple):
    """A snapshot, and what it was written with that the table's metadata does not have."""

    snapshot: SnapshotId
    what: str


class TableFormat(EditTable, Protocol):
    """A table format: what it reads, and what it can change."""

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

    def load(self, table: str, metadata_location: str) -> State:
        """Returns the table's state from one read. Raises UnreadableMetadata or UnsupportedFormat."""
        ...

    def metadata_files(self, state: State) -> Iterator[str]:
        """Yields the metadata objects that the table names itself: the current one and those its log remembers."""
        ...

    def subject_of(self, state: State, key: str) -> Subject | None:
        """Returns what one of `metadata_files` tells of and goes with; None for one that is about the whole table."""
        ...

    def places(self, state: State) -> tuple[WrittenFolder, ...]:
        """Returns the folders that the table's writers use, with the names that they give their files there."""
        ...

    def emptied(self, state: State, folders: Iterable[str]) -> list[str]:
        """Returns which folders are to be removed where nothing is left in them, innermost first, after files went
        from some; none where the table does not ask for it.
        """
        ...

    def table_of(self, key: str) -> State | None:
        """Returns the table that a metadata object speaks of; None where it is gone. Raises where nobody can tell."""
        ...

    def written_ms(self, state: State) -> int:
        """Returns when the table's metadata was written, by its writer's clock: later ones say later times."""
        ...

    def undefined(self, state: State) -> Iterator[Undefined]:
        """Yields which schemas or partition specs of snapshots are gone: such a snapshot cannot be read, though every
        file of it is there. Raises UnreadableMetadata where nobody can tell.
        """
        ...

    def entries(self, state: State) -> int:
        """Returns about how many files a walk will meet, those of the largest snapshot at least: as the metadata tells,
        or a few requests. 0 where nothing tells.
        """
        ...

    def snapshot_objects(self, state: State) -> Iterator[Mapping[str, Any]]:
        """Yields the table's snapshots as Iceberg writes a Snapshot in JSON, with whatever other fields they have."""
        ...

    def declared_history(self, state: State) -> str | None:
        """Returns what the document's own field says of where the history of expired snapshots lies."""
        ...

    def consequences(self, state: State, expired: Set[SnapshotId], refs: Set[str], now_ms: int | None) -> Consequences:
        """Returns what follows when these snapshots and refs expire, and what else has had its time at `now_ms`.

        None where nothing goes for its own age: then only what follows from these.
        """
        ...

    def expiry_off(self, state: State) -> Mapping[str, str]:
        """Returns the properties that are lacking so that no writer expires anything; none where they never do."""
        ...

    def unaware(self, state: State) -> Sequence[str]:
        """Returns the branches on which a job still writes that started before it was told to expire nothing."""
        ...

    def misleading(self, state: State) -> Iterator[tuple[str, str]]:
        """Yields objects beside the metadata from which readers start and that lead them astray, with the reason."""
        ...

    def dropping(self, state: State, refs: Set[str]) -> Dropping:
        """Returns what goes with these refs.

        Raises UsageError where there is none of that name, UnsupportedFormat where a run cannot drop it.
        """
        ...

    def roots(self, state: State) -> Iterator[tuple[SnapshotId, File]]:
        """Yields everything that the table's own document names, each with the snapshot it belongs to.

        The snapshot may be one that the table does not have any more; what belongs to it still counts as needed.
        """
        ...
