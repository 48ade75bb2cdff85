"""What only some formats can do: each ability is a protocol that a use case asks for by name, with `isinstance`.

A format has an ability by having its methods. Nothing else tells: neither its name nor what it commits against.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable
from uuid import UUID

from firnline.model.files import File, Tally
from firnline.model.snapshots import SnapshotId
from firnline.policy.decide import Decision
from firnline.ports.formats import Amendment, State
from firnline.ports.listings import WrittenFolder

if TYPE_CHECKING:
    from firnline.model.drawing import HistoryDrawing
    from firnline.model.readers import StreamOffset


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


@dataclass(frozen=True, slots=True)
class FolderPointer:
    """A file in a table's folder that names a version of its metadata, for readers without a catalog."""

    key: str
    guid: str
    metadata: str
    branch: str

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    def is_of(self, uuid: str) -> bool:
        """Tells whether it speaks of the table with this uuid: one folder may have pointers of several.

        A table of version 1 may have no uuid, and a pointer always has a guid of its own. Then any in the
        folder may be this table's, and what it names has to stay.
        """
        own = _uuid(uuid)
        return own is None or own == _uuid(self.guid)


def _uuid(text: str) -> UUID | None:
    """Returns the uuid in a text, however that is spelled: writers differ in letters and dashes. None for no uuid."""
    try:
        return UUID(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class PointedVersion:
    """What readers find who go by a pointer: a metadata object, in it a snapshot, None where it has none, and the files
    that this names. `trouble` says why they cannot read it; what is there of it is needed all the same. `is_outside`:
    its metadata lies where none of this table's is, and was not read.
    """

    pointer: FolderPointer
    snapshot: SnapshotId | None = None
    files: tuple[File, ...] = ()
    trouble: str = ""
    is_outside: bool = False


class Undefined(NamedTuple):
    """A snapshot, what it was written with that the table's metadata does not have, and where that would stand."""

    snapshot: SnapshotId
    what: str
    where: str


class ClockFault(NamedTuple):
    """A snapshot whose own time another contradicts, what is wrong with it, what to do, and where its metadata lies."""

    snapshot: SnapshotId
    problem: str
    hint: str
    where: str


@runtime_checkable
class FitsDecisions(Protocol):
    """Commits that cannot take out any set of snapshots, such as those that cut all of a table at one instant."""

    def fitted(self, state: State, decision: Decision, open_since_ms: int) -> Decision:
        """Returns the decision that a commit can bring about: what it cannot take out alone stays, with the reason. So
        does what was written since an instant and no ref leads to: its writer may be about to make one.

        Raises RefusedForSafety where it would take out what the decision keeps.
        """
        ...


@runtime_checkable
class DoubtsTimes(Protocol):
    """What goes is decided by times that writers' clocks gave, which other clocks may contradict."""

    def refuse_doubtful(self, state: State, snapshots: Set[SnapshotId]) -> None:
        """Raises RefusedForSafety if snapshots may be younger than they seem, of these that are to go. It asks the
        store: for those who act, and not for every answer.
        """
        ...


@runtime_checkable
class DrawsHistory(Protocol):
    """Commits that rewrite a history: what follows what is not the same afterwards."""

    def drawing(self, state: State, snapshots: Set[SnapshotId], refs: Set[str]) -> HistoryDrawing:
        """Returns the history with these snapshots and refs, and what a commit that takes them out leaves."""
        ...


@runtime_checkable
class SideObjects(Protocol):
    """A table has more than snapshots and refs: changelogs, consumers. They end by rules of their own."""

    def consequences(self, state: State, expired: Set[SnapshotId], refs: Set[str], now_ms: int | None) -> Consequences:
        """Returns what follows when these snapshots and refs expire, and what else has had its time at `now_ms`.

        None where nothing goes for its own age: then only what follows from these.
        """
        ...


@runtime_checkable
class KeepsBackups(Protocol):
    """Writers leave earlier versions of the metadata behind, which no reader of the table needs."""

    def backups(self, state: State) -> WrittenFolder:
        """Returns the folder of these, and their names. They go by a retention of their own, where one is set."""
        ...


@runtime_checkable
class UnprovedNames(Protocol):
    """Units name files by something that no checksum covers. A name that was damaged is that of a file which does not
    exist; and the file that was meant looks like garbage as soon as nothing else names it.
    """

    @property
    def missing_means(self) -> str:
        """Returns what it may mean that a needed file is not there, in words."""
        ...


@runtime_checkable
class UnitsElsewhere(Protocol):
    """Units lie in other folders than the roots that name them: a cache has to ask the store about those, too."""

    def unit_folders(self, state: State) -> Sequence[str]:
        """Returns these folders. Nothing but units lies in them."""
        ...


@runtime_checkable
class SplitMetadata(Protocol):
    """Metadata in many objects, each about one thing: it goes with that."""

    def subject_of(self, state: State, key: str) -> Subject | None:
        """Returns what one of `metadata_files` tells of and goes with; None for one that is about the whole table."""
        ...


@runtime_checkable
class EmptiesFolders(Protocol):
    """Folders that a purge may remove once they are empty."""

    def emptied(self, state: State, folders: Iterable[str]) -> list[str]:
        """Returns which folders are to be removed where nothing is left in them, innermost first, after files went
        from some; none where the table does not ask for it.
        """
        ...


@runtime_checkable
class ExpiringWriters(Protocol):
    """Writers that expire snapshots by themselves, by options of the table."""

    def expiry_off(self, state: State) -> Mapping[str, str]:
        """Returns the properties that are lacking so that no writer expires anything."""
        ...

    def unaware(self, state: State) -> Sequence[str]:
        """Returns the branches on which a job still writes that started before it was told to expire nothing."""
        ...


@runtime_checkable
class NotesHolds(Protocol):
    """A hold on a whole table is a note of firnline's own: the format has nothing that other programs would heed."""

    @property
    def unheeded(self) -> str:
        """Returns what the operator must know of such a hold, in words."""
        ...


@runtime_checkable
class LengthensRetention(Protocol):
    """A table's own retention, which other engines go by, can be lengthened."""

    def lengthened(self, state: State, age_ms: int, count: int, tags: Sequence[str]) -> Amendment:
        """Returns what is to be written so that no engine lets go what is younger than `age_ms`, one of the last
        `count` of a branch, or held by a tag that one of the patterns `tags` names. Nothing is ever shortened.
        """
        ...


@runtime_checkable
class NumberedBranches(Protocol):
    """Each branch counts its own snapshots, and keeps an unbroken range of numbers."""

    def branch_of(self, snapshot: SnapshotId) -> str:
        """Returns the name of the branch that counted the snapshot."""
        ...


@runtime_checkable
class HistoryField(Protocol):
    """The document has a field of its own for where the history of expired snapshots lies."""

    def declared_history(self, state: State) -> str | None:
        """Returns what the document's own field says of where the history of expired snapshots lies."""
        ...


@runtime_checkable
class KeepsVersions(Protocol):
    """A table's whole metadata is one object, which a pointer can name; earlier versions can be read again, as long as
    nobody clears them away.
    """

    def versions(self, state: State) -> Sequence[tuple[str, int]]:
        """Returns the location of each version, and when it was written: oldest first, as far as the table's log tells,
        and this one last.
        """
        ...

    def clearing(self, state: State, earlier: int) -> str | None:
        """Returns what to set so that writers keep so many earlier ones and delete the rest; None where they do."""
        ...


@runtime_checkable
class TellsSize(Protocol):
    """Metadata says how large a table is, without a look at its files."""

    def live_size(self, state: State) -> Tally | None:
        """Returns the files of the present snapshot, as its writer counted them; None where it did not."""
        ...


@runtime_checkable
class ReadByPointers(Protocol):
    """One metadata object says all of a table: a small file in its folder can name it to readers without a catalog."""

    def pointers(self, state: State) -> Sequence[FolderPointer]:
        """Returns the pointers in the table's folder, also those of other tables. Raises UnreadableMetadata where one
        cannot be read: nobody can tell what its readers need.
        """
        ...

    def version_behind(self, state: State, pointer: FolderPointer) -> PointedVersion:
        """Returns what readers of a pointer in the table's folder find; nothing is read where none of this table's
        metadata lies. Raises where it is there and cannot be read.
        """
        ...


@runtime_checkable
class ReadByStreams(Protocol):
    """Streams read such tables, snapshot by snapshot, and note in a checkpoint how far they came."""

    def offset_in(self, text: str) -> StreamOffset | None:
        """Returns the offset that a source of this format wrote; None for the offset of any other source. Raises
        ValueError for one that is cut off, or of a version that nobody knows here.
        """
        ...


@runtime_checkable
class DropsBranches(Protocol):
    """A branch owns metadata, which goes with it: a run can drop it, and an undo brings it back as a whole."""

    def dropping(self, state: State, refs: Set[str]) -> Dropping:
        """Returns what goes with these refs.

        Raises UsageError where there is none of that name.
        """
        ...


@runtime_checkable
class LeavesHints(Protocol):
    """Objects beside the metadata from which readers start."""

    def misleading(self, state: State) -> Iterator[tuple[str, str]]:
        """Yields objects beside the metadata from which readers start and that lead them astray, with the reason."""
        ...


@runtime_checkable
class NamesDefinitions(Protocol):
    """Snapshots name schemas and partition specs that the table's metadata has, or has lost."""

    def undefined(self, state: State) -> Iterator[Undefined]:
        """Yields which schemas or partition specs of snapshots are gone: such a snapshot cannot be read, though every
        file of it is there. Raises UnreadableMetadata where nobody can tell.
        """
        ...


@runtime_checkable
class KeepsLogs(Protocol):
    """Snapshots have transaction logs, which no walk opens: they name no files, and writers read them."""

    def unreadable_logs(self, state: State) -> Iterator[tuple[str, str]]:
        """Yields the needed logs that are there and cannot be read, each with the reason."""
        ...


@runtime_checkable
class ChecksClocks(Protocol):
    """Snapshots carry the time of their writer's clock, against which others can be held: the store's, the parent's."""

    def clock_faults(self, state: State) -> Iterator[ClockFault]:
        """Yields the snapshots whose time cannot be right: every file of them may be there, and yet their age decides
        wrongly what goes. Raises UnreadableMetadata where nobody can tell.
        """
        ...


@runtime_checkable
class OpenSessions(Protocol):
    """Writers that go on from the version that they opened, also once it has expired: they may name its files again."""

    @property
    def outlived(self) -> str:
        """Returns what becomes of a writer that is open for longer than the files of what it opened are there."""
        ...
