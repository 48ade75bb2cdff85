"""Undo: snapshots, refs and log come back in one commit, until the purge starts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing, suppress
from itertools import takewhile
from shlex import quote

from firnline.errors import RefusedForSafety, UnreadableMetadata
from firnline.history.ledger import End
from firnline.journal.events import OPEN, RECORDS_KEY, Event, RunState
from firnline.journal.runs import Run
from firnline.model.files import Root
from firnline.model.removals import Removal
from firnline.model.snapshots import SnapshotId
from firnline.model.times import tell_instant
from firnline.ops.history.ledger import note_end
from firnline.ops.history.remember import RunHistory
from firnline.ops.runs.change import change, fence_off, version_of
from firnline.ops.runs.commit import cancelled
from firnline.ops.runs.leased import LeasedRun
from firnline.ops.runs.presence import look
from firnline.ops.table.context import TableContext
from firnline.ports.abilities import DropsBranches
from firnline.ports.catalogs import Attempt
from firnline.ports.engines import Survey, Territory
from firnline.ports.formats import Edited, State, UndoWindow


class Undoing:
    """Records each try before it is sent, and remembers the run as it moves."""

    def __init__(self, leased: LeasedRun, removal: Removal) -> None:
        self.leased = leased
        self.removal = removal
        self.memory = RunHistory(leased.work, leased.run.id)

    def edit(self, state: State) -> Edited | None:
        work = self.leased.work
        work.same_table(state, self.leased.run)
        forgets = self.memory.returning(state, self.removal)
        edited = work.source.format.restore(state, self.removal, work.now(), amendment=forgets)
        first = next((run for run in work.runs(state) if self._needs(run, state, edited)), None)
        if first is not None:
            raise RefusedForSafety(
                f"{', '.join(edited.left_alone[:5])} cannot come back without what {first.id} took out",
                hint=f"nothing was changed; `firnline undo {quote(str(first.id))}` first",
            )
        return edited

    def _needs(self, other: Run, state: State, edited: Edited) -> bool:
        """Tells whether something is left alone only because another run took the branch that it belongs to: undone
        after this one, that would bring the branch back without it. Only where branches own metadata: elsewhere it
        is a ref whose snapshot is gone, and that is said.
        """
        table_format = self.leased.work.source.format
        owns = isinstance(table_format, DropsBranches)
        if not owns or not edited.left_alone or other.id.stamp == self.leased.run.id.stamp:
            return False
        with suppress(RefusedForSafety):
            states = (table_format.with_removal(state, each) for each in other.removals)
            return any(len(self._left_alone(each)) < len(edited.left_alone) for each in states)
        return False

    def _left_alone(self, state: State) -> tuple[str, ...]:
        return self.leased.work.source.format.restore(state, self.removal, self.leased.work.now()).left_alone

    def before_send(self, base: State, edited: Edited, attempt: Attempt) -> None:
        self.leased.lease.renew()
        detail = {**attempt.proof, "left_alone": list(edited.left_alone), "history": self.memory.noted}
        self.leased = self.leased.moved(RunState.UNDOING, **detail)
        self.leased.lease.check()


def undo_run(leased: LeasedRun) -> LeasedRun:
    """Returns the run, undone; or cancelled where it had not been committed.

    Raises RefusedForSafety where the purge has started, or where a file that would come back is not there any more:
    a snapshot without its files is worse than none.
    """
    if leased.run.state in OPEN:
        leased = cancelled(leased, "undone before it was committed")
        if leased.run.state is RunState.CANCELLED:
            return leased
    if leased.run.state not in (RunState.COMMITTED, RunState.UNDOING):
        raise too_late(leased.run)
    _refuse_where_nothing_comes_back(leased.work, leased.run)
    return _bring_back(leased)


def too_late(run: Run, otherwise: str = "") -> RefusedForSafety:
    """Returns the refusal of an undo that comes too late, or is not needed; `otherwise`: what may be meant instead."""
    is_over = run.state in (RunState.UNDONE, RunState.CANCELLED)  # nothing is left to be wished for
    return RefusedForSafety(_why_too_late(run), hint=otherwise or ("" if is_over else _when_undone(run)))


def _when_undone(run: Run) -> str:
    if run.undo is UndoWindow.BEFORE_COMMIT:
        return "of a table that takes no snapshot back, undo works until the commit"
    return "undo works from the commit until the purge starts"


def _why_too_late(run: Run) -> str:
    """Returns why a run cannot be undone any more, or need not be."""
    last = run.events[-1]
    at = tell_instant(last.at_ms)
    match run.state:
        case RunState.UNDONE:
            return f"{run.id} was already undone, at {at}"
        case RunState.CANCELLED:
            why = f", because {last.detail['why']}" if last.detail.get("why") else ""
            return f"{run.id} was cancelled at {at}{why}: there is nothing to undo"
        case RunState.DONE:
            return f"{run.id} cannot be undone: it is purged since {at}"
        case _:
            return f"{run.id} cannot be undone: it is {run.state} since {at}"


def _refuse_where_nothing_comes_back(work: TableContext, run: Run) -> None:
    """Raises RefusedForSafety if the catalog takes no snapshot back: there the time to undo was before the commit."""
    if work.source.load().capabilities.undo is UndoWindow.AFTER_COMMIT:
        return
    before = run.committed.detail.get("built_on") if run.committed else None
    raise RefusedForSafety(
        f"{run.id} is committed, and the catalog of {work.source.name} takes no snapshot back",
        hint="until the purge `firnline hold add TABLE NAME SNAPSHOT` keeps a snapshot's files"
        + (f"; {before} still names them and can be registered as another table" if before else ""),
    )


def undo_landed(leased: LeasedRun) -> LeasedRun | None:
    """Returns the run, undone, where one of its tries had landed before it could say so."""
    return None if _undo_landed(leased) is None else undo_run(leased)


def _bring_back(leased: LeasedRun) -> LeasedRun:
    committed = leased.run.committed
    assert committed is not None  # a run that is committed or undoing has that event
    removal = committed.removal
    left = _undo_landed(leased)
    if left is None:
        _refuse_missing_or_step_back(leased, removal)
        undoing = Undoing(leased, removal)
        try:
            changed = change(leased.work.source, undoing.edit, undoing.before_send, still=leased.lease.check)
        except RefusedForSafety:
            _count_as_committed(undoing.leased)
            raise
        left, leased = [] if changed is None else list(changed.edited.left_alone), undoing.leased
    leased.lease.renew()
    _take_out_what_is_incomplete(leased, removal, left)
    note_end(leased.work, leased.run, End.UNDONE)
    return leased.moved(RunState.UNDONE, left_alone=left)


def _count_as_committed(leased: LeasedRun) -> None:
    """Lets a run whose undo had begun, and is refused, go on to its purge: none of its tries landed, and none can."""
    if leased.run.state is RunState.UNDOING and leased.run.committed is not None:
        fence_off(leased, _tries(leased.run))
        if _undo_landed(leased) is None:
            leased.moved(RunState.COMMITTED, **leased.run.committed.detail)


def _undo_landed(leased: LeasedRun) -> list[str] | None:
    """Returns the refs that an earlier, interrupted undo left alone, if one of its tries is in the table."""
    state = leased.load()
    for event in _tries(leased.run):
        if leased.work.source.commits.landed(event.detail, version_of(state), leased.lease.check):
            return list(event.detail["left_alone"])
    return None


def _tries(run: Run) -> list[Event]:
    """Returns the tries of this undo, newest first; those before a step back were taken out again or fenced off."""
    return list(takewhile(lambda event: event.state is RunState.UNDOING, reversed(run.events)))


def _take_out_what_is_incomplete(leased: LeasedRun, removal: Removal, left_alone: Collection[str]) -> None:
    """Looks once more, now that the snapshots are in the table and no other tool takes their files for garbage.

    One that looked just before may have removed some since our first look; then the snapshots go again, all but those
    that were named meanwhile, and the undo is refused.
    """
    try:
        _refuse_missing(leased, removal)
    except RefusedForSafety:
        _step_back(leased, removal, left_alone)
        raise


def _without(leased: LeasedRun, state: State, removal: Removal, ours: Mapping[str, SnapshotId]) -> Edited | None:
    """Returns the table without what the undo put back; what anything else names by now stays."""
    work, run = leased.work, leased.run
    work.same_table(state, run)
    refs = {name for name, snapshot in ours.items() if name in state.refs and state.refs[name].snapshot == snapshot}
    named = {ref.snapshot for name, ref in state.refs.items() if name not in refs} | {state.current}
    snapshots = {each for each in removal.ids if each in state.graph and each not in named}
    if not snapshots and not refs:
        return None
    again = RunHistory(work, run.id).leaving_again(state, snapshots, removal) if _remembers(run) else None
    return work.source.format.expire(state, snapshots, refs, work.now(), amendment=again)


def _remembers(run: Run) -> bool:
    return run.committed is not None and run.committed.detail.get("history") is not None


def _refuse_missing_or_step_back(leased: LeasedRun, removal: Removal) -> None:
    """Raises RefusedForSafety if files are missing; a run that had begun to undo is committed again before, so that a
    purge can end it.
    """
    try:
        _refuse_missing(leased, removal)
    except RefusedForSafety:
        newest = next(iter(_tries(leased.run)), None)
        _step_back(leased, removal, [] if newest is None else newest.detail["left_alone"])
        raise


def _step_back(leased: LeasedRun, removal: Removal, left_alone: Collection[str]) -> None:
    """Lets a run that had begun to undo count as committed again, for a purge may follow.

    First no try of its undo can land any more, and one that had landed, or did so just now, is taken out again. Not so
    if the record is not sealed: it could name any snapshot of the table as one that an undo brought back.
    """
    run, lease = leased.run, leased.lease
    if run.state is not RunState.UNDOING or run.committed is None or not run.is_sealed:
        return
    fence_off(leased, _tries(run))
    ours = {name: snapshot for name, snapshot in removal.refs.items() if name not in left_alone}
    change(
        leased.work.source,
        lambda state: _without(leased, state, removal, ours),
        lambda base, edited, attempt: lease.renew(),
        still=lease.check,
    )
    leased.moved(RunState.COMMITTED, **run.committed.detail)


def _refuse_foreign(work: TableContext, run: Run, state: State, survey: Survey) -> None:
    """Raises if the record is not sealed and what would come back needs files outside the table's own
    folders: a forger could make any file of the lake a part of this table.
    """
    if run.is_sealed:
        return
    bounds = work.bounds(state, run)
    keys = (key for batch in survey.kept_batches() for key in batch.column("key").to_pylist())
    foreign = next(((key, reason) for key in keys if (reason := bounds.forbids(key))), None)
    if foreign is not None:
        raise RefusedForSafety(
            f"{run.id} would bring back snapshots that need {foreign[0]}, which {foreign[1]}; and its record is not "
            "sealed with your key",
            hint=f"if you know that run, add --include-outside; the same {RECORDS_KEY} on every machine would tell",
        )


def _refuse_missing(leased: LeasedRun, removal: Removal) -> None:
    """Raises RefusedForSafety unless every file that the snapshots need exists, also those that others shared at plan
    time.
    """
    work, run, state = leased.work, leased.run, leased.load()
    returning = set(removal.ids)
    revived = work.source.format.with_removal(state, removal)
    present = {owner for owner, _ in work.source.format.roots(state)}
    roots = (
        Root(file, True, owner)
        for owner, file in work.source.format.roots(revived)
        if owner in returning or owner not in present
    )
    hint = "another tool removed them; plan again if the rest may go"
    engine = work.choose(state, work.source.format, "auto")
    try:
        survey = engine.survey(roots, work.source.format.expand, Territory(None))
    except UnreadableMetadata as missing:
        raise RefusedForSafety(f"{run.id} cannot be undone: {missing.message}", hint=hint) from missing
    with closing(survey):
        _refuse_foreign(work, run, state, survey)
        by_name = state.owned if work.source.format.unique_names else ()
        presence = look(engine, survey, work.store, by_name)
    if presence.faults:
        named = "; ".join(f"{each.path} ({each.problem})" for each in presence.listed[:5])
        raise RefusedForSafety(f"{run.id} cannot be undone, {presence.faults} files are gone: {named}", hint=hint)
