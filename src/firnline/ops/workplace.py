"""Where a run works: one table, its records, its lease and a clock that agrees with the store's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from firnline.errors import OutcomeUnknown, RefusedForSafety, TableMoved
from firnline.journal.layout import RECORDS, RunId, records_root
from firnline.journal.lease import LARGEST_SKEW_MS, Lease, LeaseTimes
from firnline.journal.runs import Run, list_runs, load_run
from firnline.model.locations import join, parse_location
from firnline.model.times import format_duration
from firnline.ops.plan import ChooseEngine
from firnline.ops.settle import policy_in_force
from firnline.plans.request import Request
from firnline.policy.config import Section
from firnline.ports.discard import Discard
from firnline.ports.formats import FenceKind, State
from firnline.ports.progress import Progress, Silent
from firnline.ports.stores import ReadWrite
from firnline.ports.tables import WritableTable


def _nobody(also: Sequence[str], searched: Sequence[str]) -> Iterable[Workplace]:
    """Stands in where no other table can be asked: to act as if there were none would be a guess."""
    raise RefusedForSafety("the tables of the configured catalogs cannot be seen from here", hint="this is a bug")


@dataclass(frozen=True, slots=True)
class Workplace:
    """Everything a use case needs to change a table, except the power to delete.

    `everyone` returns where each table of every configured catalog is worked on, and those at the given locations, or
    around them where they may share one of the folders that are searched: for those who must ask them all.
    """

    source: WritableTable
    store: ReadWrite
    config: Section
    choose: ChooseEngine
    now: Callable[[], int]
    owner: str
    lease_times: LeaseTimes = field(default_factory=LeaseTimes)
    progress: Progress = field(default_factory=Silent)
    interrupted: Callable[[], bool] = lambda: False
    discard: Discard | None = None
    everyone: Callable[[Sequence[str], Sequence[str]], Iterable[Workplace]] = _nobody

    def root(self, state: State) -> str:
        """Returns where this table's runs are recorded: where its first commit pinned it, whatever is configured now.

        Settings differ between machines and change over time, and a table may move: a process that looked elsewhere
        would hold another lease and know nothing of runs that can still be undone.
        """
        pinned = state.properties.get(RECORDS)
        if pinned:
            return pinned
        records = policy_in_force(state, self.source.name, self.config, Request()).records.value
        return records_root(state.location, state.uuid, records)

    def runs(self, state: State) -> list[Run]:
        """Returns the runs of this very table: one that was dropped may have left records in the same folder, and one
        that this is a copy of left its own.
        """
        found = list_runs(self.store, self.root(state), state.table)
        return [run for run in found if run.uuid == state.uuid and not _is_elsewhere(state, run)]

    def run(self, run: RunId) -> tuple[State, Run]:
        """Returns the table and the run. Raises TableMoved where the table is not the one that was planned."""
        state = self.source.load()
        found = load_run(self.store, self.root(state), run)
        same_table(state, found)
        return state, found

    @contextmanager
    def lease(self, state: State, break_it: bool = False) -> Iterator[Lease]:
        """Holds the table's lease for the time of the block. Raises where clocks disagree: ages would be wrong.

        Where a commit got no answer the lease is not released: the commit may still arrive, and whoever comes next
        would take it for lost, cancel the run, and then see its snapshots go.
        """
        folder = join(self.root(state), "lease")
        held = Lease(self.store, folder, self.lease_times, self.owner, self.now)
        held.acquire(break_it)
        try:
            self._check_clock(held)
            with held.heartbeat():
                yield held
        except (OutcomeUnknown, KeyboardInterrupt):
            held.let_run_out()
            raise
        finally:
            held.release()
        if self.discard is not None:
            self.discard.discard(held.superseded())

    def _check_clock(self, held: Lease) -> None:
        written = self.store.head(held.key)
        skew = abs(self.now() - written.modified_ms) if written.modified_ms is not None else 0
        if skew > LARGEST_SKEW_MS:
            raise RefusedForSafety(
                f"this machine's clock and the store's differ by {format_duration(skew)}",
                hint=f"set the clock; more than {format_duration(LARGEST_SKEW_MS)} makes every age wrong",
            )


def same_table(state: State, run: Run) -> None:
    """Returns where the run was planned on this very table; a re-created table of the same name is another one, and so
    is a copy in another place.
    """
    if state.uuid != run.uuid:
        raise TableMoved(
            f"{state.table} is another table now: planned on {run.uuid}, found {state.uuid}", hint="plan again"
        )
    if _is_elsewhere(state, run):
        raise TableMoved(
            f"{state.table} is another table: {run.id} was planned on {run.plan['table']}",
            hint="the list of that run names files there; plan again for a table that was copied or moved",
        )


def _is_elsewhere(state: State, run: Run) -> bool:
    """Tells whether the run is one of another folder, where a table is its folder and nothing else tells it from a
    copy: its list names the other one's files, and that one's holds and tags are not seen from here.
    """
    is_folder = state.capabilities.fence is FenceKind.NONE
    return is_folder and _place(run.plan["table"]) != _place(state.location)


def _place(location: str) -> str:
    """Returns what tells folders apart: by whatever links a local one is named."""
    name = parse_location(location)
    return str(name._replace(path=os.path.realpath(name.path)) if name.scheme == "file" else name).rstrip("/")
