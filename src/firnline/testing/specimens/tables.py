"""Tables that the contract of a format is tried on, and what is done to them by the very use cases."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Protocol

from firnline.journal.runs import Run
from firnline.model.files import File, Root
from firnline.model.locations import identity
from firnline.ops.runs.plan import roots
from firnline.ops.runs.status import RunStatus
from firnline.ports.abilities import SideObjects
from firnline.ports.catalogs import TableName
from firnline.ports.engines import Engine, Territory
from firnline.ports.expanding import Expand, joined, unit_of
from firnline.ports.formats import State, TableFormat, UndoWindow
from firnline.ports.kits import Kit
from firnline.stores.objects import ObjectStores
from firnline.testing.dated import Clock
from firnline.testing.faults import Fault
from firnline.testing.folder_process import FolderProcess

EVERYTHING_OLD: dict[str, Any] = {"retain_last": 1, "older_than": "2100-01-01T00:00:00Z", "blast_radius": 1.0}
HOUR_MS = 3_600_000


class Specimen(Protocol):
    """A table in a local folder with snapshots that nothing but their age keeps, and a reader that shares no code with
    the format under test.
    """

    @property
    def location(self) -> str:
        """The table's folder, as an operator names it."""
        ...

    @property
    def vital(self) -> tuple[str, ...]:
        """Local paths of metadata that every load reads."""
        ...

    def needed(self) -> set[str]:
        """Returns the local paths of all that the table's snapshots need now, as the reader sees it."""
        ...

    def mark(self) -> None:
        """Writes fields that nobody knows: to the table's own metadata, and to its snapshots."""
        ...

    def marked(self) -> bool:
        """Tells whether all of these fields are there, of the table and of each snapshot that it has."""
        ...


def loaded(kit: Kit, table_format: TableFormat, specimen: Specimen) -> State:
    """Returns the table as it is now."""
    name = TableName.at(specimen.location)
    return table_format.load(str(name), kit.folder_tables(ObjectStores()).locate(name))


def begun(process: FolderProcess, specimen: Specimen) -> Run:
    """Returns a run that takes out all that may go, and can still be undone: committed, unless that would end it."""
    ended = process.expire(specimen.location, grace="1h", **EVERYTHING_OLD)
    assert isinstance(ended, RunStatus)
    return ended.run


def committed(process: FolderProcess, specimen: Specimen) -> Run:
    """Returns a run that took out all that may go; once its time to undo is over, where a commit cannot be."""
    run = begun(process, specimen)
    if run.removal is None:
        process.clock.advance(HOUR_MS)
        (ended,) = process.resume(specimen.location)
        assert isinstance(ended, RunStatus)
        run = ended.run
    return run


def comes_back(state: State) -> bool:
    """Tells whether a commit to this table can be undone."""
    return state.capabilities.undo is UndoWindow.AFTER_COMMIT


def expire(specimen: Specimen, clock: Clock, fault: Fault | None) -> None:
    FolderProcess(fault, clock=clock).expire(specimen.location, grace="0s", sole_writer=True, **EVERYTHING_OLD)


def undo(specimen: Specimen, clock: Clock, fault: Fault) -> None:
    run = begun(FolderProcess(clock=clock), specimen)
    FolderProcess(fault, clock=clock).undo(str(run.id))


def snapshots_of(specimen: Specimen) -> set[str]:
    return set(FolderProcess().places.source(specimen.location).load().graph.by_id)


def roots_of(table_format: TableFormat, state: State) -> set[tuple[str, str]]:
    return {(owner, identity(file.key)) for owner, file in table_format.roots(state)}


def released(table_format: TableFormat, state: State) -> frozenset[str]:
    """Returns the owners that need nothing any more once all expires that no ref names."""
    named = {ref.snapshot for ref in state.refs.values()}
    gone = {each.id for each in state.graph if each.id not in named}
    if isinstance(table_format, SideObjects):
        return table_format.consequences(state, gone, set(), None).released
    return frozenset(gone)


def units_of(table_format: TableFormat, state: State) -> list[File]:
    """Returns every unit of the table, once."""
    expand = table_format.expand
    found = {identity(file.key): file for _, file in table_format.roots(state) if file.opens}
    for kind in expand.order:
        units = [each for each in found.values() if each.kind is kind]
        if units:
            rows = joined([(range(len(units)), expand(units))]).rows.to_pylist()
            deeper = [row for row in rows if row["opens"]]
            found |= {row["identity"]: unit_of(row) for row in deeper if row["identity"] not in found}
    return list(found.values())


def reached(
    engine: Engine, table_format: TableFormat, state: State, gone: frozenset[str], expand: Expand | None = None
) -> dict[str, list[tuple[str, str, int]]]:
    """Returns what an engine says: what is kept, and what only these owners need."""
    every: list[Root] = list(roots(table_format, state, gone))
    with closing(engine.survey(iter(every), expand or table_format.expand, Territory(None))) as survey:
        batches = {"kept": survey.kept_batches(), "victims": survey.victim_batches()}
        return {
            name: sorted((row["identity"], row["kind"], row["size"] or 0) for each in some for row in each.to_pylist())
            for name, some in batches.items()
        }


def local_path(key: str) -> str:
    return key.removeprefix("file://")
