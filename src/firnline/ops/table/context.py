"""The table that a run works on: its records, its lease, a store that can carry the run, and the store's clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from firnline.errors import AccessDenied, FirnlineError, NoSuchTable, OutcomeUnknown, RefusedForSafety, TableMoved
from firnline.journal.events import UNSEALED, Sealing
from firnline.journal.layout import RECORDS, RunId, records_root
from firnline.journal.lease import Lease, LeaseTimes
from firnline.journal.runs import Run, list_runs, load_run
from firnline.model.locations import is_dotted, join, within
from firnline.model.names import is_location
from firnline.ops.reachability.bounds import Bounds, place_of
from firnline.ops.runs.decision import policy_in_force
from firnline.ops.table.absent import NoCheckpoints, no_tiers
from firnline.ops.table.clocks import clock_at, clock_by, earliest_clock
from firnline.plans.request import Request
from firnline.policy.inherit import effective
from firnline.policy.parse import Section, written_values
from firnline.ports.catalogs import TableName, WritableTable
from firnline.ports.engines import ChooseEngine
from firnline.ports.formats import State
from firnline.ports.observing.watch import RunWatch
from firnline.ports.progress import Progress, Silent
from firnline.ports.stores import AS_CALLED, Checkpoints, ReadWrite, RealNames

if TYPE_CHECKING:
    from firnline.ops.neighbours.index import Index
    from firnline.ops.tiers.tier import OpenTier
    from firnline.ports.discard import Discard
    from firnline.ports.listings import ListRanges
    from firnline.ports.probe import StoreVerdicts


_HINT = "`firnline check store URI` shows what was tried"


def unfit(found: StoreVerdicts, *, deletes: bool) -> FirnlineError | None:
    """Returns why no run may begin here, or None. `deletes`: it is going to delete files, not only change metadata."""
    needed = {"list": found.list, "read": found.get, "write": found.put}
    if deletes:
        needed["delete"] = found.delete
    for what, finding in needed.items():
        if not finding:
            return AccessDenied(f"cannot {what} in {found.place}: {finding.evidence}; nothing was changed", hint=_HINT)
    if not found.put_if_absent:
        return RefusedForSafety(
            f"{found.place} cannot keep a lease, so two processes could work on one table: "
            f"{found.put_if_absent.evidence}",
            hint=f"{_HINT}; `records: URI` keeps them in another store",
        )
    return None


def refuse_unfit(found: StoreVerdicts, *, deletes: bool) -> None:
    """Raises where the store cannot carry a run."""
    problem = unfit(found, deletes=deletes)
    if problem is not None:
        raise problem


_DOCUMENT_ENDS = (".json", ".json.gz")


def _nobody(also: Sequence[str], searched: Sequence[str]) -> Iterable[Registered]:
    """Stands in where no other table can be asked: to act as if there were none would be a guess."""
    raise RefusedForSafety("the tables of the configured catalogs cannot be seen from here", hint="this is a bug")


def _no_catalogs(locations: Sequence[str]) -> Iterable[Registered]:
    """Stands in where no other table can be asked: to act as if there were none would be a guess."""
    raise RefusedForSafety("the tables of the configured catalogs cannot be seen from here", hint="this is a bug")


@dataclass(frozen=True, slots=True)
class Registered:
    """One table as a catalog lists it. `metadata` is where its metadata lies; None if the listing does not tell.

    `address` tells catalogs apart: two names for one catalog have the same.
    """

    name: TableName
    address: str
    metadata: str | None
    open: Callable[[], TableContext]

    @property
    def at(self) -> tuple[str, TableName]:
        """What tells registrations apart."""
        return self.address, self.name

    def is_at(self, name: TableName, address: str) -> bool:
        """Tells whether this is the registration of that name."""
        here = (self.address, self.name.namespace, self.name.name)
        return self.name == name or here == (address, name.namespace, name.name)


@dataclass(frozen=True, slots=True)
class TableContext:
    """Everything a use case needs to change a table, except the power to delete its files; `discard` removes firnline's
    own objects only.

    `everyone` lists each table of every configured catalog, and those at the given locations, or around them where they
    may share one of the folders that are searched: for those who must ask them all. None of them is read.
    `registered` lists the tables of every configured catalog, and those at the given locations, without reading them;
    `may_list` tells whether the catalog that a table's name begins with is among these;
    `mirrors` yields the metadata of another format that writers of a table, known by its format and location, keep over
    its files; `table_around` finds a table by a folder of its data files. `lease_store` is the same store without a
    pace. `address` is that of this table's catalog, `server` that of its files, `real` a file's name without links.
    `include_outside` is what the operator says in this very moment about files outside the table's own folders, None
    where the configuration decides; `sealing` returns with what records are sealed, made where there was none yet.
    `ranges` lists the table's store in pieces, None where files can only be asked for one by one. `open_tier` opens a
    tier of history, `checkpoints` reads what streaming readers leave behind, `watch` is who hears of runs.
    """

    source: WritableTable
    store: ReadWrite
    config: Section
    choose: ChooseEngine
    now: Callable[[], int]
    owner: str
    index: Index
    lease_store: ReadWrite = field(repr=False)
    lease_times: LeaseTimes = field(default_factory=LeaseTimes)
    progress: Progress = field(default_factory=Silent)
    interrupted: Callable[[], bool] = lambda: False
    discard: Discard | None = None
    everyone: Callable[[Sequence[str], Sequence[str]], Iterable[Registered]] = _nobody
    registered: Callable[[Sequence[str]], Iterable[Registered]] = _no_catalogs
    may_list: Callable[[str], bool] = lambda table: False
    mirrors: Callable[[str, str], Iterable[Registered]] = lambda table_format, location: ()
    table_around: Callable[[str], str | None] = lambda folder: None
    address: str = ""
    server: str = ""
    real: RealNames = AS_CALLED
    sealing: Callable[[bool], Sealing] = lambda make: UNSEALED
    ranges: ListRanges | None = None
    include_outside: bool | None = None
    open_tier: OpenTier = no_tiers
    checkpoints: Checkpoints = field(default_factory=NoCheckpoints)
    watch: RunWatch = field(default_factory=RunWatch)

    def root(self, state: State) -> str:
        """Returns the folder of the records of this table's runs: the one that its first commit pinned, whatever is
        configured now.

        Settings differ between machines and change over time, and a table may move: a process that looked elsewhere
        would hold another lease and know nothing of runs that can still be undone. Raises RefusedForSafety if that
        is neither in the table's folder nor in one that the operator configured: a property is anybody's word.
        """
        pinned = state.properties.get(RECORDS)
        if pinned:
            self._refuse_strange_root(state, pinned)
            return pinned
        records = policy_in_force(state, self.source.name, self.config, Request()).records.value
        return records_root(state.location, state.uuid, records)

    def _refuse_strange_root(self, state: State, pinned: str) -> None:
        known = (state.location, *written_values(self.config, "records"))
        if is_dotted(pinned) or not any(within(each, pinned) for each in known):
            raise RefusedForSafety(
                f"{state.table} says that the records of its runs are in {pinned}, which is neither in its own folder "
                "nor in one that is configured",
                hint=f"if that is right, write `records:` with a folder that holds it into firnline.yaml; "
                f"else remove the table property {RECORDS}",
            )

    def own_folders(self, state: State) -> tuple[str, ...]:
        """Returns the folders in which firnline keeps what it knows of this table's runs: that of their records, then
        that of the list of unfinished ones if there is one.
        """
        from firnline.journal.unfinished import unfinished_folder

        records = self._records
        return (self.root(state), *([] if records is None else [unfinished_folder(records)]))

    @property
    def _records(self) -> str | None:
        """The records root that is configured now, whatever the table pinned: there the list of unfinished runs is,
        and a list is of no use that one only finds by way of the table. None if there is none, and for a table that no
        catalog has: nobody looks for its runs unless by its name.
        """
        name = self.source.name
        return effective(self.config, name.catalog, name.namespace, name.name).records.value if name.catalog else None

    def enter(self, state: State, run: RunId) -> None:
        """Puts a run on the list of unfinished ones, if there is one. Raises StoreError unless it is there."""
        from firnline.journal.unfinished import RunEntry, put_entry

        records = self._records
        if records is not None:
            metadata = state.fence.rpartition("/")[0]
            put_entry(self.store, records, RunEntry(self.source.name, self.address, state.uuid, metadata, run.stamp))

    def strike(self, run: Run) -> None:
        """Takes a run off the list of unfinished ones. An entry that stays leads to a run that has ended."""
        from firnline.journal.unfinished import entry_key

        records = self._records
        if records is not None and self.discard is not None:
            self.discard.discard([entry_key(records, run.uuid, run.id.stamp)])

    def bounds(self, state: State, run: Run, *, searched: bool = False) -> Bounds:
        """Returns the bounds of what a run may delete now: the table's own folders, or anywhere if the operator says
        so. What was searched for goes from the table's location; by the operator's word from its other folders too.
        """
        outside = self.may_go_outside(state, run)
        if searched:
            folders: tuple[str, ...] | None = state.owned if outside else (state.location,)
        else:
            folders = None if outside else state.owned
        return Bounds(folders, state.location, self.root(state), self.real)

    def may_go_outside(self, state: State, run: Run) -> bool:
        """Tells whether the operator says, now, that files outside the table's own folders may go too. What the
        configuration says of all runs is not said of one whose record is not sealed.
        """
        if self.include_outside is not None:
            return self.include_outside
        configured = policy_in_force(state, self.source.name, self.config, Request()).include_outside.value
        return configured and run.is_sealed

    def recorded(self, state: State, *, but: str | None = None, finished: dict[str, Run] | None = None) -> list[Run]:
        """Returns every run that is recorded for a table of this uuid, under whatever name it was planned: what any of
        them may bring back is needed. One that was dropped may have left records in the same folder.
        """
        found = list_runs(self.store, self.root(state), state.table, self.sealing(False), but=but, finished=finished)
        return [run for run in found if run.uuid == state.uuid]

    def runs(self, state: State) -> list[Run]:
        """Returns the runs that were planned on this very table: those of another registration or of a folder that
        this is a copy of are carried on there.
        """
        return [run for run in self.recorded(state) if self._planned_here(run, state)]

    def run(self, run: RunId) -> tuple[State, Run]:
        """Returns the table and the run. Raises TableMoved unless the table is the one that was planned."""
        state = self.source.load()
        found = load_run(self.store, self.root(state), run, self.sealing(False))
        self.same_table(state, found)
        return state, found

    def same_table(self, state: State, run: Run) -> None:
        """Raises TableMoved unless the run was planned on this very table.

        A re-created table of the same name is another one. So is a copy in another place, and so is a second
        registration: the holds and tags of the first are not seen from there.
        """
        if state.uuid != run.uuid:
            raise TableMoved(
                f"{state.table} is another table now: planned on {run.uuid}, found {state.uuid}", hint="plan again"
            )
        if not self._planned_here(run, state):
            raise TableMoved(
                f"{state.table} is another table: {run.id} was planned on {run.plan['table']}",
                hint=f"go on with {run.plan['table']}, or plan again",
            )

    def _planned_here(self, run: Run, state: State) -> bool:
        """Tells whether a run was planned on this table. One that was renamed since is still the same, as long as no
        table of the old name is there. Where the old name's catalog cannot be asked, that is not known:

        1. Two machines have one table, each in a catalog of its own; its records lie in its folder.
        2. One of them takes a snapshot out, which a person holds there during grace.
        3. The other, which knows nothing of the first one's catalog, purges what it finds recorded.
        """
        planned = str(run.plan["table"])
        if planned == state.table:
            return True
        if is_location(planned) or is_location(state.table):
            return place_of(planned) == place_of(state.table)
        if run.plan.get("address") != self.address and not self.may_list(planned):
            return False
        return not any(str(each.name) == planned and has_uuid(each, state.uuid) for each in self.registered(()))

    @contextmanager
    def lease(self, state: State, break_it: bool = False) -> Iterator[tuple[TableContext, Lease]]:
        """Holds the table's lease for the time of the block, in which this place goes by the store's clock.

        Raises RefusedForSafety unless the machine's clock is near the store's: ages would be wrong.

        Where a commit got no answer the lease is not released: the commit may still arrive, and the process that comes
        next would take it for lost, cancel the run, and then see its snapshots go.
        """
        folder = join(self.root(state), "lease")
        held = Lease(self.lease_store, folder, self.lease_times, self.owner, self.now, self.progress)
        held.acquire(break_it)
        try:
            clock = clock_by(self.lease_store, held.key, self.now)
            with held.heartbeat():
                yield replace(self, now=clock), held
        except (OutcomeUnknown, KeyboardInterrupt):
            held.let_run_out()
            raise
        finally:
            held.release()
        if self.discard is not None:
            self.discard.discard(held.superseded())

    def by_clocks_of(self, folders: Iterable[str], root: str) -> TableContext:
        """Returns this place, which goes by the earliest of several clocks: that of the records at `root`, and those of
        folders where the ages of files count. Raises RefusedForSafety where they are far from each other.

        1. The records lie in another store, or a folder on a disk of its own. Only the records' clock was looked at.
        2. The folder's is days behind. What a writer put there an hour ago looks older than any write takes.
        """
        return replace(self, now=earliest_clock(self.store, folders, root, self.now, self.discard))

    def by_the_store(self, state: State) -> TableContext:
        """Returns this place by the store's clock, for what is written without a lease. Raises RefusedForSafety like
        `lease`.
        """
        return replace(self, now=clock_at(self.store, self.root(state), self.now, self.discard))


def has_uuid(table: Registered, uuid: str) -> bool:
    """Tells whether the table of that name is the one with this uuid now."""
    try:
        return table.open().source.load().uuid == uuid
    except NoSuchTable:
        return False


def refuse_copy(name: TableName, state: State) -> None:
    """Raises RefusedForSafety if a table that is named by its folder says that it lives in another one.

    A copied or moved folder still names the files of the original, and what is needed there is not seen from here.
    """
    is_folder = not name.catalog and not name.name.endswith(_DOCUMENT_ENDS)
    if is_folder and place_of(name.name) != place_of(state.location):
        raise RefusedForSafety(
            f"{name} is a copy, or was moved: its metadata names the files of {state.location}",
            hint=f"name {state.location} itself; the files in a copy are named by nobody",
        )
