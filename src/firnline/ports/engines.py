"""Walking and judging files at any scale. `local` and `spark` implement this and pass one suite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from firnline.model.files import Root, Tally, Totals
from firnline.model.locations import identity
from firnline.ports.formats import Expand

if TYPE_CHECKING:
    import pyarrow as pa


FILE_COLUMNS = ("identity", "key", "size", "kind")

OUTSIDE = "outside-location"
NEAR_MISS = "near-miss"
SPARED_REASONS = {
    OUTSIDE: "lies outside the table's own folders",
    NEAR_MISS: "has the path of a needed file under another scheme or authority",
}


@dataclass(frozen=True, slots=True)
class Territory:
    """Which victims may go: those under `owned`. None owns everything (the operator said so)."""

    owned: tuple[str, ...] | None


def root_columns(roots: Iterable[Root]) -> dict[str, list[object]]:
    """Returns the roots as columns, one row each: what every engine starts its walk from."""
    rows = list(roots)
    return {
        "identity": [identity(root.file.key) for root in rows],
        "key": [root.file.key for root in rows],
        "size": [root.file.size for root in rows],
        "kind": [root.file.kind.value for root in rows],
        "opens": [root.file.opens for root in rows],
        "needed": [root.needed for root in rows],
        "expects": [root.file.expects for root in rows],
    }


class Survey(Protocol):
    """What a walk found. Lives on the engine: only totals and one batch at a time reach the caller."""

    @property
    def kept(self) -> Totals: ...

    @property
    def victims(self) -> Totals: ...

    @property
    def spared(self) -> dict[str, Tally]:
        """What no kept snapshot needs and yet stays, by reason."""
        ...

    @property
    def units_opened(self) -> int: ...

    def victim_batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the victims as batches of FILE_COLUMNS, each a bounded number of rows, sorted by nothing."""
        ...

    def kept_batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the needed files the same way."""
        ...

    def close(self) -> None:
        """Gives back what the engine holds for this survey."""
        ...


class Engine(Protocol):
    @property
    def name(self) -> str: ...

    def survey(self, roots: Iterable[Root], expand: Expand, territory: Territory) -> Survey:
        """Walks from the roots, opens each unit once and judges every file by reachability.

        A file is a victim when some root that is not needed reaches it and no needed root does. Raises
        UnreadableMetadata, naming the unit, as soon as any unit cannot be read: nothing is assumed about it.
        """
        ...
