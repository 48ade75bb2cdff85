"""Taking data files out of a table's whole history: snapshots stay, and name these files no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

from firnline.model.files import File
from firnline.model.snapshots import SnapshotId
from firnline.ports.catalogs import Still
from firnline.ports.formats import Edited, State
from firnline.ports.progress import Progress
from firnline.ports.stores import PutIfAbsent


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A data file as the table names it; it `lives` where a snapshot has its rows."""

    path: str
    size: int
    rows: int
    lives: bool


@dataclass(frozen=True, slots=True)
class Namers:
    """Who names some data files. Snapshots that are `losing` have their rows; those that are `mentioning` only tell
    that they took them out. `units` are the metadata files that name them.
    """

    files: tuple[NamedFile, ...] = ()
    losing: frozenset[SnapshotId] = frozenset()
    mentioning: frozenset[SnapshotId] = frozenset()
    units: tuple[File, ...] = ()

    @property
    def snapshots(self) -> frozenset[SnapshotId]:
        return self.losing | self.mentioning


@dataclass(frozen=True, slots=True)
class Lost:
    """What a snapshot has less: data files with their rows, deletes that were about them alone, and bytes of both."""

    files: int = 0
    rows: int = 0
    deletes: int = 0
    positions: int = 0
    bytes: int = 0

    def __add__(self, other: Lost) -> Lost:
        return Lost(*(mine + more for mine, more in zip(asdict(self).values(), asdict(other).values(), strict=True)))


@dataclass(frozen=True, slots=True)
class Trimmed:
    """A snapshot, the unit that it began with `before`, and the one `after`, which names all but the erased files."""

    snapshot: SnapshotId
    before: str
    after: str
    lost: Lost

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(said: Mapping[str, Any]) -> Trimmed:
        return Trimmed(said["snapshot"], said["before"], said["after"], Lost(**said["lost"]))


@dataclass(frozen=True, slots=True)
class Trimming:
    """Snapshots that were trimmed, and all units that were `written` for them."""

    snapshots: tuple[Trimmed, ...]
    written: tuple[str, ...]


@runtime_checkable
class ErasesFiles(Protocol):
    """A format of which data files can be taken out of snapshots that stay."""

    def naming(self, state: State, files: Set[str], progress: Progress, among: Set[SnapshotId] | None = None) -> Namers:
        """Returns who names the data files of these identities, among some snapshots or all. Opens every unit of them.

        Raises UsageError where one of them is a file of deletes: without it rows would come back.
        """
        ...

    def trimmed(self, state: State, files: Set[str], naming: Namers, store: PutIfAbsent, still: Still) -> Trimming:
        """Returns the snapshots without the files, whose units are written by then, under names of their own: the
        table names none of them yet. `still` is asked before each write.
        """
        ...

    def with_trimmed(self, state: State, trimmed: Sequence[Trimmed]) -> State:
        """Returns the state as if the snapshots were trimmed: for walking what it will need."""
        ...

    def erased(self, state: State, trimmed: Sequence[Trimmed], now_ms: int) -> Edited | None:
        """Returns the table with trimmed snapshots in the place of those that are as they were; None where there is
        none any more. Statistics of them go: they were counted with the files.
        """
        ...
