"""A folder with several tables, worked on as if it were one table without snapshots: it has records and a lease."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import NAMESPACE_URL, uuid5

from firnline.errors import RefusedForSafety
from firnline.model.graph import Graph
from firnline.model.locations import identity
from firnline.ops.sources import nothing_passed
from firnline.policy.native import LONGEST_AGE_MS, NativeRetention
from firnline.ports.catalogs import Commit, TableName
from firnline.ports.formats import Capabilities, FenceKind, State, TableFormat, UndoWindow


@dataclass(frozen=True, slots=True)
class Prefix:
    """The folder behind the port of a table. Nothing can be committed to it."""

    location: str
    format: TableFormat

    @property
    def name(self) -> TableName:
        return TableName.at(self.location)

    @property
    def commits(self) -> Commit:
        raise RefusedForSafety(f"{self.location} is a folder, not a table", hint="name one table")

    @property
    def passed(self) -> Callable[[str], Iterable[str]]:
        return nothing_passed

    def load(self) -> State:
        return State(
            table=self.location,
            format=self.format.name,
            location=self.location,
            uuid=f"folder-{uuid5(NAMESPACE_URL, identity(self.location))}",
            fence="",
            graph=Graph([]),
            current=None,
            refs={},
            native=NativeRetention(LONGEST_AGE_MS, 1),
            capabilities=Capabilities(FenceKind.NONE, UndoWindow.NONE, holes=True),
            properties={},
            document={},
            owned=(self.location,),
        )
