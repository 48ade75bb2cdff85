"""Erasing data files from a table and from every tier that has its history: `erase`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from firnline.app.catalogs import Table
from firnline.app.places import Places
from firnline.app.runs import Leave, Runs
from firnline.errors import FirnlineError, RefusedForSafety, TableMoved, UsageError
from firnline.journal.events import RunState
from firnline.model.locations import identity, within
from firnline.ops.erasure.finding import TableLoss, erases, places_in, refuse_kept
from firnline.ops.erasure.plan import plan_erasure
from firnline.ops.erasure.repacking import Repacking
from firnline.ops.runs.status import RunStatus
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.finding import histories
from firnline.ops.tiers.tier import Tier
from firnline.ops.tiers.waking import Awake, Inquiry, Waking
from firnline.plans.erasure import ERASURE
from firnline.policy.tiers import LIVE
from firnline.ports.erasing import Naming
from firnline.ports.formats import State
from firnline.ports.stores import is_there
from firnline.tiers.places import PlacesElsewhere

_MOST_TRIES = 10


@dataclass(frozen=True, slots=True)
class ErasurePlan:
    """Files that shall go, as the live table names them, and what each table loses with them; `notes` is what no purge
    reaches.
    """

    files: tuple[str, ...]
    tables: tuple[TableLoss, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_nothing(self) -> bool:
        return all(each.is_nothing for each in self.tables)

    def to_json(self) -> dict[str, Any]:
        return {
            "files": list(self.files),
            "tables": [each.to_json() for each in self.tables],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class ErasedFrom:
    """What became of the files in one table: the last run that erased them there, None where it named none. `left` are
    those that lie there still although no snapshot names them; `repacked` is how many bundles were packed anew, and
    `awaited` how many must come first.
    """

    tier: str
    table: str
    run: RunStatus | None = None
    left: tuple[str, ...] = ()
    repacked: int = 0
    awaited: Awake | None = None

    @property
    def waits(self) -> bool:
        return self.awaited is not None or (self.run is not None and not self.run.run.is_finished)

    def to_json(self) -> dict[str, Any]:
        waits = None if self.awaited is None else {"readable": self.awaited.readable, "of": self.awaited.bundles.files}
        return {
            "tier": self.tier,
            "table": self.table,
            "run": None if self.run is None else self.run.id,
            "state": None if self.run is None else self.run.state.value,
            "waits_for": None if self.run is None else self.run.waits,
            "left": list(self.left),
            "repacked": self.repacked,
            "bundles_awaited": waits,
        }


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """How far the erasure of some files came."""

    files: tuple[str, ...]
    tables: tuple[ErasedFrom, ...]

    @property
    def is_done(self) -> bool:
        return not any(each.waits or each.left for each in self.tables)

    def to_json(self) -> dict[str, Any]:
        return {
            "files": list(self.files),
            "tables": [each.to_json() for each in self.tables],
            "done": self.is_done,
        }


@dataclass(frozen=True, slots=True)
class _There:
    """One table that may name the files, under these places. `tier` is None of the live one."""

    work: TableContext
    tier: Tier | None
    places: frozenset[str]

    @property
    def name(self) -> str:
        return LIVE if self.tier is None else self.tier.policy.name

    @property
    def identities(self) -> frozenset[str]:
        return frozenset(map(identity, self.places))

    def naming(self, state: State) -> Naming:
        return erases(self.work.source.format, state.table).naming(state, self.identities, self.work.progress)

    @property
    def repacking(self) -> Repacking | None:
        """What erases the files from bundles; None where the tier has none."""
        if self.tier is None or self.tier.bundles is None or self.work.discard is None:
            return None
        return Repacking(self.tier.bundles, self.tier.store, self.work.discard, self.places)


@dataclass(frozen=True, slots=True)
class Erasures:
    """What is erased from tables and their tiers."""

    places: Places
    runs: Runs

    def plan(self, table: Table, files: Sequence[str]) -> ErasurePlan:
        """Returns which snapshots would lose some data files: of the live table and of each tier. Changes nothing.

        Raises UsageError where one of them is a file of deletes, or where no snapshot at all names any.
        """
        found = list(self._everywhere(table, files))
        return self._planned(tuple(files), found)

    def _planned(self, files: tuple[str, ...], found: list[_There]) -> ErasurePlan:
        plan = ErasurePlan(files, tuple(map(self._loss, found)), tuple(self._notes(found)))
        if plan.is_nothing:
            raise UsageError(
                f"no snapshot names {files[0]}" + (f", or another of {len(files)} files" if files[1:] else ""),
                hint="name files as the live table does: `SELECT file_path FROM TABLE.all_data_files`",
            )
        return plan

    def carry_out(
        self,
        table: Table,
        files: Sequence[str],
        asked: Inquiry,
        grace_ms: int | None,
        confirm: Callable[[ErasurePlan], None],
    ) -> ErasureReport:
        """Returns how far the erasure came: in each table it is a run of its own, which any process can carry on; the
        live table first, so that nothing is handed to a tier again. The same call, made again, goes on.

        Raises RefusedForSafety, before anything is changed, where a table cannot lose the files.
        """
        asked.refuse_vague()
        found = list(self._everywhere(table, files))
        begun = [self._carried_on(there) for there in found]
        if not any(status is not None and not status.run.is_finished for status in begun):
            self._confirmed(tuple(files), found, begun, confirm)
        done = [self._erased(there, status, asked, grace_ms) for there, status in zip(found, begun, strict=True)]
        return ErasureReport(tuple(files), tuple(done))

    def _confirmed(
        self,
        files: tuple[str, ...],
        found: list[_There],
        begun: Sequence[RunStatus | None],
        confirm: Callable[[ErasurePlan], None],
    ) -> None:
        """Shows what goes, unless it was shown before and only its end was left."""
        try:
            plan = self._planned(files, found)
        except UsageError:
            if any(begun):
                return
            raise
        for each in plan.tables:
            if each.refused:
                raise RefusedForSafety(f"{each.state.table}: {each.refused}", hint="nothing was changed in any table")
        confirm(plan)

    def _everywhere(self, table: Table, files: Sequence[str]) -> Iterator[_There]:
        """Yields the live table, then each that holds its history."""
        work = self.places.table_context(table)
        live = work.source.load()
        tiers = list(histories(work, live))
        roots = [tier.policy.root for tier, _ in tiers]
        paths = [_as_live(path, live, tiers) for path in files]
        yield _There(work, None, frozenset(paths))
        for tier, _ in tiers:
            others = [root for root in roots if root != tier.policy.root]
            places = places_in(paths, tier.policy.root, others)
            yield _There(self.places.table_context(str(tier.table)), tier, places)

    def _loss(self, there: _There) -> TableLoss:
        state, refused = there.work.source.load(), None
        naming = there.naming(state)
        repacking = there.repacking
        bundles = () if repacking is None else tuple(sorted(repacking.due()))
        try:
            refuse_kept(state, naming.snapshots, there.work.now())
        except FirnlineError as problem:
            refused = f"{problem.message} ({problem.hint})"
        return TableLoss(there.name, state, naming, bundles, refused)

    def _notes(self, found: list[_There]) -> Iterator[str]:
        for there in found:
            name, state = there.work.source.name, there.work.source.load()
            yield from (f"{there.name}: {each}" for each in self.places.stores.warnings(name, state.location))

    def _carried_on(self, there: _There) -> RunStatus | None:
        """Returns the last erasure of any of the files in a table that was begun before, as far as it may go now."""
        last = None
        for run in there.work.runs(there.work.source.load()):
            if run.kind == ERASURE and there.identities & set(map(identity, run.erasure.files)):
                is_open = not run.is_finished
                last = self.runs.advance(str(run.id), Leave()) if is_open else self.runs.named(str(run.id))
        return last

    def _erased(self, there: _There, begun: RunStatus | None, asked: Inquiry, grace_ms: int | None) -> ErasedFrom:
        status = begun
        if status is None or status.run.is_finished:
            status = self._run(there, asked, grace_ms) or status
        state = there.work.source.load()
        done = ErasedFrom(there.name, state.table, status)
        if done.waits:
            return done
        return self._repacked(there, state, replace(done, left=tuple(self._left(there))), asked)

    def _run(self, there: _There, asked: Inquiry, grace_ms: int | None) -> RunStatus | None:
        """Returns a new run, as far as it may go now; None where no snapshot names the files. Where one came since the
        plan that does, it is planned again.
        """
        for left in reversed(range(_MOST_TRIES)):
            state = there.work.source.load()
            naming = there.naming(state)
            if not naming.units:
                return None
            planned = plan_erasure(there.work, state, there.identities, naming, asked, grace_ms)
            run = str(self.runs.recorded(there.work, planned, meant=True).run)
            try:
                return self.runs.advance(run, Leave())
            except TableMoved:
                if self.runs.undo(run, Leave()).state is not RunState.CANCELLED or not left:
                    raise
        return None

    def _left(self, there: _There) -> Iterator[str]:
        """Yields the files that are still there although no snapshot names them any more: a purge spared them, or
        another engine took their snapshots out.
        """
        stores = self.places.stores
        store = stores.open(stores.settings_of(there.work.source.name))
        yield from (path for path in sorted(there.places) if is_there(store, path))

    def _repacked(self, there: _There, state: State, done: ErasedFrom, asked: Inquiry) -> ErasedFrom:
        """Returns what became of bundles that hold the files: they are asked for where they sleep, and then packed anew
        without them.
        """
        repacking = there.repacking
        if repacking is None or there.tier is None or there.tier.bundles is None:
            return done
        due = repacking.due()
        if due:
            waking = Waking(there.tier.bundles, there.tier.store, there.work.progress, there.work.now)
            awake = waking.wake(due, "", "be erased", asked)
            if not awake.is_all:
                return replace(done, awaited=awake)
        with self.places.alone(there.work.root(state)), there.work.lease(state) as (work, lease):
            repacking.erase(asked, work.now, lease.check)
        return replace(done, repacked=len(due))


def _as_live(path: str, live: State, tiers: Sequence[tuple[Tier, State]]) -> str:
    """Returns a path as the live table has it, also one that was read in a tier."""
    for tier, there in tiers:
        if within(tier.policy.root, path):
            return PlacesElsewhere.back_to(live.location, tier.policy.root, there.location).place(path)
    return path
