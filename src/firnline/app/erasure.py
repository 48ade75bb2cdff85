"""Erasing data files from a table and from every tier that has its history: `erase`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from firnline.app.naming import Table, texts_meant
from firnline.app.places import Places
from firnline.app.runs import Leave, Runs
from firnline.errors import FirnlineError, RefusedForSafety, TableMoved, UnreadableMetadata, UsageError
from firnline.journal.events import RunState
from firnline.journal.runs import Run
from firnline.model.locations import within
from firnline.model.snapshots import SnapshotId
from firnline.ops.erasure.finding import AskedFiles, TableLoss, begin_with, erases, places_in, refuse_hopeless
from firnline.ops.erasure.plan import plan_erasure
from firnline.ops.erasure.repacking import Repacking
from firnline.ops.erasure.report import ErasedFrom, ErasurePlan, ErasureReport, Starts
from firnline.ops.runs.plan import Planned
from firnline.ops.runs.status import RunStatus
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.bundling import Bundles
from firnline.ops.tiers.finding import tiers_for
from firnline.ops.tiers.tier import Tier
from firnline.ops.tiers.transfer import walked
from firnline.ops.tiers.waking import Inquiry, Waking
from firnline.plans.kinds import ERASURE
from firnline.policy.tiers import LIVE
from firnline.ports.erasing import Namers
from firnline.ports.formats import State
from firnline.ports.stores import Head, is_there
from firnline.tiers.belonging import is_archive
from firnline.tiers.places import PlacesElsewhere

_MOST_TRIES = 10
Seen = TypeVar("Seen")


@dataclass(frozen=True, slots=True)
class _There:
    """One table that may name the files. `tier` is None of the live one."""

    work: TableContext
    tier: Tier | None
    asked: AskedFiles

    @property
    def name(self) -> str:
        return LIVE if self.tier is None else self.tier.policy.name

    def naming(self, state: State, among: Set[SnapshotId] | None = None) -> Namers:
        table_format = erases(self.work.source.format, state.table)
        return table_format.naming(state, self.asked.identities, self.work.progress, among)

    def starts(self, state: State) -> Starts:
        """Returns what each snapshot begins with: where that is the same, it names what it named."""
        return frozenset(begin_with(self.work.source.format, state).items())

    def erasures(self) -> list[Run]:
        """Returns the runs that erased any of the files here, or are about to, in the order of planning."""
        runs = self.work.runs(self.work.source.load())
        return [run for run in runs if run.kind == ERASURE and self.asked.among(run.erasure.files)]

    def lying(self, store: Head) -> list[str]:
        """Returns the files that are there, by any name that is known of them."""
        told = {path for run in self.erasures() for path in run.erasure.files if self.asked.among([path])}
        return [path for path in sorted(self.asked.every_place | told) if is_there(store, path)]

    @property
    def repacking(self) -> Repacking | None:
        """What erases the files from bundles; None where the tier has none."""
        if self.tier is None or self.tier.bundles is None or self.work.discard is None:
            return None
        return Repacking(self.tier.bundles, self.tier.store, self.work.discard, self.asked.identities)


@dataclass(frozen=True, slots=True)
class _Tableless:
    """A tier that has no table of this history, and perhaps files of a hand-over that did not come to its end."""

    tier: Tier
    asked: AskedFiles

    def lying(self) -> list[str]:
        """Returns the files that are there, and bundles that hold one, or may."""
        bundles = self.tier.bundles
        if bundles is None:
            return [path for path in sorted(self.asked.every_place) if is_there(self.tier.store, path)]
        plain = (path for path in self.asked.every_place if is_there(bundles.plain, path))
        packed = bundles.index.holding(bundles.index.spelled(self.asked.identities))
        return sorted({*plain, *packed, *bundles.index.unnamed()})


@dataclass(frozen=True, slots=True)
class _Everywhere:
    """All that may have the files: tables, and tiers that have none yet."""

    files: tuple[str, ...]
    tables: list[_There]
    tableless: list[_Tableless]

    def known(self, plan: ErasurePlan) -> set[str]:
        """Returns the files that something names, holds, or was said to erase."""
        found = set[str]()
        for there, loss in zip(self.tables, plan.tables, strict=True):
            runs = (path for run in there.erasures() for path in run.erasure.files)
            packed = () if there.repacking is None else there.repacking.known()
            found |= there.asked.among([*(each.path for each in loss.naming.files), *runs, *packed])
        return found


@dataclass(frozen=True, slots=True)
class Erasures:
    """What is erased from tables and their tiers."""

    places: Places
    runs: Runs

    def plan(self, table: Table, files: Sequence[str]) -> ErasurePlan:
        """Returns which snapshots would lose some data files: of the live table and of each tier. Changes nothing.

        Raises UsageError where one of them is a file of deletes, or where no snapshot at all names it.
        """
        found = self._everywhere(table, files)
        plan = self._planned(found)
        _refuse_unknown(found, set() if plan.is_nothing else found.known(plan))
        return plan

    def _planned(self, found: _Everywhere) -> ErasurePlan:
        losses = tuple(map(self._loss, found.tables))
        return ErasurePlan(found.files, losses, (*self._notes(found), *_notes_of_files(losses)))

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
        found = self._everywhere(table, files)
        begun = [self._carried_on(there) for there in found.tables]
        if not set(found.files) <= _approved(found, begun):
            self._confirmed(found, confirm)
        done = [self._erased(there, asked, grace_ms) for there in found.tables]
        done = [_looked_again(there, each) for there, each in zip(found.tables, done, strict=True)]
        left = ((each, each.lying()) for each in found.tableless)
        more = (
            ErasedFrom(each.tier.policy.name, str(each.tier.table), left=tuple(some)) for each, some in left if some
        )
        return ErasureReport(found.files, (*done, *more))

    def _confirmed(self, found: _Everywhere, confirm: Callable[[ErasurePlan], None]) -> None:
        """Shows what goes, unless only its end is left. Raises UsageError for a file that nothing knows."""
        plan = self._planned(found)
        for each in plan.tables:
            if each.refused:
                raise RefusedForSafety(f"{each.state.table}: {each.refused}", hint="nothing was changed in any table")
        _refuse_unknown(found, found.known(plan))
        if not plan.is_nothing:
            confirm(plan)

    def _everywhere(self, table: Table, files: Sequence[str]) -> _Everywhere:
        """Returns the live table, then each that holds its history, or may come to."""
        work = self.places.table_context(table)
        live = work.source.load()
        _refuse_history(live)
        tiers = list(tiers_for(work, live))
        for tier in tiers:
            tier.refuse_unbundled()
        theirs = [(tier, tier.find()) for tier in tiers]
        paths = {path: _as_live(path, live, theirs) for path in texts_meant("files", files)}
        found = _Everywhere(tuple(paths), [_There(work, None, _asked(paths, lambda path: frozenset((path,))))], [])
        for tier, there in theirs:
            others = [each.policy.root for each in tiers if each is not tier]
            asked = _asked(paths, lambda path: places_in(path, tier.policy.root, others, live, there))  # noqa: B023
            if there is None:
                found.tableless.append(_Tableless(tier, asked))
            else:
                found.tables.append(_There(self.places.table_context(str(tier.table)), tier, asked))
        return found

    def _loss(self, there: _There) -> TableLoss:
        return _steadily(there, self._loss_of)

    def _loss_of(self, there: _There, state: State) -> TableLoss:
        naming, refused = there.naming(state), None
        repacking = there.repacking
        bundles = () if repacking is None else tuple(sorted({*repacking.due(), *repacking.left()}))
        try:
            refuse_hopeless(there.work, state, there.asked.identities, naming)
        except UnreadableMetadata:
            raise
        except FirnlineError as problem:
            refused = f"{problem.message} ({problem.hint})"
        return TableLoss(there.name, state, naming, bundles, refused)

    def _notes(self, found: _Everywhere) -> Iterator[str]:
        for there in found.tables:
            name, state = there.work.source.name, there.work.source.load()
            yield from (f"{there.name}: {each}" for each in self.places.stores.warnings(name, state.location))
        for tier in found.tableless:
            yield from (f"{path} has it, and no table of the tier {tier.tier.policy.name}" for path in tier.lying())

    def _carried_on(self, there: _There) -> RunStatus | None:
        """Returns the last erasure of any of the files in a table that was begun before, as far as it may go now; one
        that is not at its end before others.
        """
        last: RunStatus | None = None
        for run in there.erasures():
            status = self.runs.named(str(run.id)) if run.is_finished else self._advanced(str(run.id))
            if last is None or last.run.is_finished or not status.run.is_finished:
                last = status
        return last

    def _advanced(self, run: str) -> RunStatus:
        """Returns the run as far as it may go now: called off where the table has moved since it was planned."""
        try:
            return self.runs.advance(run, Leave())
        except TableMoved:
            status = self.runs.undo(run, Leave())
            if status.state is not RunState.CANCELLED:
                raise
            return status

    def _erased(self, there: _There, asked: Inquiry, grace_ms: int | None) -> ErasedFrom:
        """Returns what became of the files in a table.

        1. This process finds no run that erases them.
        2. Another plans one, and commits: no snapshot names them any more. Its grace lasts, or its purge does.
        3. This process finds nothing to take out, and files that lie there still. They are the other run's to delete.
        """
        run, starts = self._run(there, asked, grace_ms)
        if run is None or run.run.is_finished:
            run = self._carried_on(there)
        state = there.work.source.load()
        done = ErasedFrom(there.name, state.table, run, starts=starts)
        if done.waits:
            return done
        stores = self.places.stores
        left = there.lying(stores.open(stores.settings_of(there.work.source.name)))
        return self._repacked(there, state, replace(done, left=tuple(left)), asked)

    def _run(self, there: _There, asked: Inquiry, grace_ms: int | None) -> tuple[RunStatus | None, Starts]:
        """Returns a new run, as far as it may go now, None where no snapshot names the files; and what snapshots begin
        with that name none by then. Where a snapshot is not as it was planned, all is planned again.
        """
        for _ in range(_MOST_TRIES):
            state, planned = _steadily(there, partial(_planned_erasure, asked, grace_ms))
            if planned is None:
                return None, there.starts(state)
            plan = self.runs.recorded(there.work, planned, meant=True)
            status = self._advanced(str(plan.run))
            if status.state is not RunState.CANCELLED:
                trimmed = erases(there.work.source.format, state.table).with_trimmed(state, status.run.erasure.trimmed)
                return status, there.starts(trimmed)
        raise _never_steady(there)

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
            repacking.erase(
                asked, work.now, lease.check, partial(_refuse_unfound, work, there.tier, there.tier.bundles)
            )
        return replace(done, repacked=len(due), left=(*done.left, *repacking.strays()))


def _planned_erasure(asked: Inquiry, grace_ms: int | None, there: _There, state: State) -> tuple[State, Planned | None]:
    """Returns the state with the plan that takes the files out of it; None where it names none."""
    naming = there.naming(state)
    if not naming.units:
        return state, None
    return state, plan_erasure(there.work, state, there.asked.identities, naming, asked, grace_ms)


def _steadily(there: _There, look: Callable[[_There, State], Seen]) -> Seen:
    """Returns what is seen of a table; looks again where it moved meanwhile.

    1. This process loads the table.
    2. Another erasure, without a grace, commits and deletes the manifests that it replaced.
    3. This process misses one of them.
    """
    for _ in range(_MOST_TRIES):
        state = there.work.source.load()
        try:
            return look(there, state)
        except UnreadableMetadata:
            if there.work.source.load().fence == state.fence:
                raise
    raise _never_steady(there)


def _never_steady(there: _There) -> TableMoved:
    return TableMoved(f"{there.work.source.name} moves whenever it is looked at", hint="erase again")


def _refuse_unfound(work: TableContext, tier: Tier, bundles: Bundles) -> None:
    """Raises ArchiveIncomplete unless every file that the tier's table needs is found."""
    state = work.source.load()
    every = {owner for owner, _ in tier.format.roots(state)}
    with walked(work, tier.format, state, every) as (_, survey):
        bundles.of(survey, tier.leaves)


def _notes_of_files(losses: Iterable[TableLoss]) -> Iterator[str]:
    from firnline.stores.local import more_names

    for path in (each.path for loss in losses for each in loss.naming.files):
        if more := more_names(path):
            yield f"{path} has more names on its disk (hard links: {more}), by which its bytes stay"


def _asked(paths: Mapping[str, str], places: Callable[[str], frozenset[str]]) -> AskedFiles:
    return AskedFiles({asked: places(path) for asked, path in paths.items()})


def _approved(found: _Everywhere, begun: Sequence[RunStatus | None]) -> set[str]:
    """Returns the files that runs erase which are not at their end: they were shown when these began."""
    approved = set[str]()
    for there, status in zip(found.tables, begun, strict=True):
        if status is not None and not status.run.is_finished:
            approved |= there.asked.among(status.run.erasure.files)
    return approved


def _refuse_unknown(found: _Everywhere, known: Set[str]) -> None:
    """Raises UsageError for a file that nothing names: a slip of the pen would count as erased."""
    unknown = [each for each in found.files if each not in known]
    if unknown:
        raise UsageError(
            f"no snapshot names {unknown[0]}" + (f", nor {len(unknown) - 1} others" if unknown[1:] else ""),
            hint="name files as the live table does: `SELECT file_path FROM TABLE.all_data_files`; nothing was changed",
        )


def _refuse_history(live: State) -> None:
    """Raises UsageError for the table of a tier: the file would stay in the live one."""
    if is_archive(live.uuid, live.properties):
        raise UsageError(
            f"{live.table} keeps the history of another table", hint="name that one: its tiers lose the file with it"
        )


def _looked_again(there: _There, done: ErasedFrom) -> ErasedFrom:
    """Returns the same, with snapshots that came since it was looked at and name the files.

    1. A restore copies a snapshot out of a tier; the live table has none that names the file.
    2. The tier loses the file.
    3. The restore commits.
    """
    return replace(done, came=_steadily(there, partial(_come_since, done.starts)))


def _come_since(starts: Starts, there: _There, state: State) -> tuple[SnapshotId, ...]:
    late = {snapshot for snapshot, _ in there.starts(state) - starts}
    return tuple(sorted(there.naming(state, late).losing)) if late else ()


def _as_live(path: str, live: State, tiers: Sequence[tuple[Tier, State | None]]) -> str:
    """Returns a path as the live table has it, also one that was read in a tier."""
    for tier, there in tiers:
        if there is not None and within(tier.policy.root, path):
            return PlacesElsewhere.back_to(live.location, tier.policy.root, there.location).place(path)
    return path
