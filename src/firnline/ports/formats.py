"""What a table format tells firnline: its state, its roots and how a unit expands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from firnline.model.files import File, Unit
from firnline.model.graph import Graph
from firnline.model.holds import Hold, Pin
from firnline.model.snapshots import Ref, SnapshotId
from firnline.policy.native import NativeRetention

if TYPE_CHECKING:
    import pyarrow as pa


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


class Expand(Protocol):
    """Opens units on an executor: small, picklable, no session, no JVM."""

    def __call__(self, unit: Unit) -> Expansion: ...


@dataclass(frozen=True, slots=True)
class Expansion:
    """What one unit names: deeper units, and files as a batch of FILE_COLUMNS (identity, key, size, kind).

    The unit itself is among the files, with the size that was read: each unit is a file of its table too.
    """

    units: tuple[Unit, ...]
    files: pa.RecordBatch


FILE_COLUMNS = ("identity", "key", "size", "kind")


class TableFormat(Protocol):
    """The read side of a format."""

    @property
    def name(self) -> str: ...

    @property
    def expand(self) -> Expand: ...

    def load(self, table: str, metadata_location: str) -> State:
        """Returns the table's state from one read. Raises UnreadableMetadata or UnsupportedFormat."""
        ...

    def units(self, state: State, snapshots: Iterable[SnapshotId]) -> Iterator[Unit]:
        """Yields the units from which these snapshots are walked."""
        ...

    def files(self, state: State, snapshots: Iterable[SnapshotId]) -> Iterator[File]:
        """Yields the files that the table's own document names for these snapshots (statistics and the like)."""
        ...
