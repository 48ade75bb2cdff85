"""What a catalog says of a table, as its pointers need it; and how far behind that a pointer is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from firnline.errors import NoSuchTable, RefusedForSafety
from firnline.model.locations import identity
from firnline.ops.table.context import TableContext
from firnline.pointers.document import Pointer
from firnline.pointers.names import is_uuid
from firnline.pointers.publishing import CatalogTruth
from firnline.ports.abilities import KeepsVersions
from firnline.ports.formats import State, TableFormat

UuidOf = Callable[[tuple[str, ...]], str]
"""Returns the uuid of the table that a name, level by level, has in the same catalog. Raises NoSuchTable."""


def is_registered(uuid_of: UuidOf, pointer: Pointer) -> bool:
    """Tells whether the catalog has the pointer's table under the pointer's name."""
    try:
        return uuid_of(pointer.parts) == pointer.guid
    except NoSuchTable:
        return False


@dataclass(frozen=True, slots=True)
class Behind:
    """How far a pointer is behind: so many commits, None if the table does not name that version any more; and since
    when, as far as the table tells.
    """

    commits: int | None
    since_ms: int


def truth_of(work: TableContext, state: State) -> CatalogTruth:
    """Returns what is to be published. Raises RefusedForSafety for a format whose state is not in one file."""
    table_format, name = work.source.format, work.source.name
    if not name.catalog or not isinstance(table_format, KeepsVersions):
        raise RefusedForSafety(
            f"{name} can have no pointers",
            hint="they are for tables of Iceberg that a catalog has; write `pointers: off`",
        )
    if not is_uuid(state.uuid):
        raise RefusedForSafety(
            f"{name} has no uuid of its own, and a pointer needs one", hint="a table of version 2 has one; upgrade it"
        )
    return CatalogTruth(
        namespace=name.namespace,
        table=name.name,
        guid=state.uuid,
        location=state.location,
        metadata=state.fence,
        committed_ms=table_format.written_ms(state),
        address=work.address,
    )


@dataclass
class Asking:
    """Asks the catalog of a table again and again; `state` is what it said last."""

    work: TableContext
    state: State | None = field(default=None, init=False)

    def __call__(self) -> CatalogTruth:
        self.state = self.work.source.load()
        return truth_of(self.work, self.state)


def behind(table_format: TableFormat, state: State, pointer: Pointer) -> Behind | None:
    """Returns how far a pointer is behind; None if it names the current version. One of a table that was dropped and
    made again is behind by more than the new table's log can tell.
    """
    versions = table_format.versions(state) if isinstance(table_format, KeepsVersions) else []
    names = [identity(place) for place, _ in versions]
    told = identity(pointer.metadata_file_path)
    if not names or told == names[-1]:
        return None
    if told not in names:
        return Behind(None, versions[0][1])
    at = len(names) - 1 - names[::-1].index(told)
    return Behind(len(names) - 1 - at, versions[at + 1][1])
