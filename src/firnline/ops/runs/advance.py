"""Carrying runs on: from the stage that a run's record says it is in to as far as it may go now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from shlex import quote
from typing import assert_never

from firnline.errors import FirnlineError, RefusedForSafety, TableMoved, UsageError
from firnline.journal.events import OPEN, RunState
from firnline.journal.lease import Lease
from firnline.journal.runs import Run, in_commit_order, refuse_unsealed_run
from firnline.model.times import format_instant
from firnline.ops.erasure.commit import call_off_erasure, commit_erasure, erasure_landed
from firnline.ops.orphans.guard import LakeGuard
from firnline.ops.orphans.joining import JoinedGuard
from firnline.ops.orphans.plan import begin_grace, call_off
from firnline.ops.orphans.scope import Prefix
from firnline.ops.runs.approval import awaits_approval, refuse_unapproved
from firnline.ops.runs.commit import cancelled, commit_landed, commit_run, refuse_refused
from firnline.ops.runs.guard import Guard, TableGuard, reachable_since_plan, reachable_since_search
from firnline.ops.runs.leased import LeasedRun
from firnline.ops.runs.moving import failures_told
from firnline.ops.runs.purge import Deleter, blocked_by, purge_run, waits_for_grace
from firnline.ops.runs.status import RunStatus, status_of
from firnline.ops.runs.undo import undo_landed, undo_run
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.archive import archive_run
from firnline.plans.kinds import ERASURE, EXPIRY, ORPHANS
from firnline.plans.stages import (
    ArchiveSnapshots,
    AwaitGrace,
    AwaitUndo,
    BeginGrace,
    CommitErasure,
    CommitExpiry,
    PurgeVictims,
    Stage,
)
from firnline.ports.catalogs import StepwiseCommit

_PURGEABLE = (RunState.COMMITTED, RunState.PURGING)
_HALFWAY = (RunState.COMMITTING, RunState.UNDOING)
COMMITS: Mapping[str, Callable[[LeasedRun], LeasedRun]] = {
    EXPIRY: commit_run,
    ORPHANS: begin_grace,
    ERASURE: commit_erasure,
}
UNDOES: Mapping[str, Callable[[LeasedRun], LeasedRun]] = {
    EXPIRY: undo_run,
    ORPHANS: call_off,
    ERASURE: call_off_erasure,
}
"""What a run of each kind does in its stage of that name."""


def advance(leased: LeasedRun, deleter: Deleter) -> RunStatus:
    """Returns the run as far as it may go now: committed if it was meant, purged if its grace is over."""
    refuse_unsealed_run(leased.run)
    if leased.run.state is RunState.UNDOING:
        return _status(undo(leased))
    if leased.run.state is RunState.PLANNED and not leased.run.is_meant:
        return _status(leased, f"`firnline commit {quote(str(leased.run.id))}`")
    waits = awaits_approval(leased.work, leased.run)
    if waits is not None:
        return _status(leased, f"a person's word: {waits}")
    return _carry_out(leased, leased.run.stages_left, deleter)


def _carry_out(leased: LeasedRun, stages: Iterable[Stage], deleter: Deleter) -> RunStatus:
    """Returns the run after these stages, or at the first that must wait. A run that ended early has no more of them:
    nothing was left to expire.
    """
    for stage in stages:
        waits = None
        match stage:
            case AwaitUndo():
                waits = _time_to_undo(leased)
            case ArchiveSnapshots():
                leased = _archived(leased)
            case CommitExpiry() | CommitErasure() | BeginGrace():
                leased = _committed(leased)
            case AwaitGrace():
                waits = _waits(leased)
            case PurgeVictims():
                waits = _waits(leased) if leased.run.state is RunState.PURGING else None  # the stage before is over
                leased = leased if waits else _purged(leased, deleter)
            case _:
                assert_never(stage)
        if waits or leased.run.is_finished:
            return _status(leased, waits)
    return _status(leased)


def _time_to_undo(leased: LeasedRun) -> str | None:
    """Returns what a run waits for that can only be undone before its commit; None where that time is over."""
    due = leased.run.commit_due_ms
    waits = due is not None and leased.work.now() < due
    return f"the end of the time to undo at {format_instant(due)}" if due is not None and waits else None


def _committed(leased: LeasedRun) -> LeasedRun:
    return COMMITS[leased.run.kind](leased)


def _archived(leased: LeasedRun) -> LeasedRun:
    """Returns the run, archived, where it may be committed at all: nobody waits for copies of a run that is refused."""
    if leased.run.archive is not None and leased.run.state is RunState.PLANNED:
        refuse_refused(leased)
    return archive_run(leased)


def _waits(leased: LeasedRun) -> str | None:
    """Returns what keeps a committed run from its purge; runs of one table go in the order of their commits."""
    work, run = leased.work, leased.run
    earlier = blocked_by(run, work.runs(work.source.load()))
    if earlier is not None:
        return f"the earlier run {earlier.id}, which is {earlier.state}"
    grace = waits_for_grace(run, work.now())
    return f"the end of grace at {grace}" if grace and run.state is RunState.COMMITTED else None


def _purged(leased: LeasedRun, deleter: Deleter) -> LeasedRun:
    """Returns the run, purged. Raises RefusedForSafety unless it was committed."""
    if leased.run.state not in _PURGEABLE:
        raise RefusedForSafety(f"{leased.run.id} is {leased.run.state}: it cannot be purged", hint="plan again")
    return purge_run(leased, deleter, _guard_of(leased.work, leased.run))


def called_off(leased: LeasedRun, why: str) -> LeasedRun:
    """Returns a run that nobody approved, cancelled with the reason."""
    refuse_unsealed_run(leased.run)
    leased.lease.renew()
    return cancelled(leased, why)


def undo(leased: LeasedRun) -> LeasedRun:
    """Returns the run, undone or called off. Raises once its purge has started."""
    refuse_unsealed_run(leased.run)
    return UNDOES[leased.run.kind](leased)


def _guard_of(work: TableContext, run: Run) -> Guard:
    if isinstance(work.source, Prefix) and run.kind != ORPHANS:
        raise RefusedForSafety(f"{run.id} is a run on a table, and there is only a folder", hint="plan again")
    if run.search is None:
        return TableGuard(work, run, reachable_since_plan(work, run))
    lake = LakeGuard(work, run, run.search, reachable_since_search(work, run))
    return lake if run.kind == ORPHANS else JoinedGuard(TableGuard(work, run, reachable_since_plan(work, run)), lake)


def settle_halfway_runs(leased: LeasedRun) -> None:
    """Reads back every other run that stopped in the middle of a commit or an undo, before this one acts.

    Afterwards the table's log may have forgotten them, and what they took out could look like this run's work.
    """
    work, lease = leased.work, leased.lease
    for other in work.runs(work.source.load()):
        if other.kind == ORPHANS or other.id.stamp == leased.run.id.stamp or other.state not in _HALFWAY:
            continue
        _refuse_unsealed_record(work, other)
        committed = erasure_landed if other.kind == ERASURE else commit_landed
        landed = committed if other.state is RunState.COMMITTING else undo_landed
        landed(LeasedRun(work, lease, other))


def _refuse_unsealed_record(work: TableContext, run: Run) -> None:
    """Raises where an undo, or a commit of several requests, would be carried on by a record that is not
    sealed: it says what to write and what to take away. Of any other commit the catalog tells whether it landed.
    """
    refuse_unsealed_run(run)
    says_all = run.state is RunState.UNDOING or isinstance(work.source.commits, StepwiseCommit)
    if not run.is_sealed and says_all:
        raise RefusedForSafety(
            f"{run.id} stopped halfway, and its record is not sealed with your key",
            hint=f"if you know that run, `firnline resume {quote(str(run.id))}` carries it on",
        )


def advance_all(work: TableContext, lease: Lease, deleter: Deleter) -> list[RunStatus]:
    """Returns every unfinished run of the table, each as far as it may go now, in the order of their commits.

    What changes the table by a record that is not sealed waits until the operator names that run. Nor does one that is
    refused before it began hold up the others: it says why.
    """
    runs = work.runs(work.source.load())
    tried = in_commit_order(runs)
    waiting = [run for run in runs if run not in tried]
    due = [run for run in (*tried, *waiting) if not run.is_finished]
    return [_advance_or_say_why(LeasedRun(work, lease, run), deleter) for run in due]


def _advance_or_say_why(leased: LeasedRun, deleter: Deleter) -> RunStatus:
    try:
        with failures_told(leased.work, leased.run):
            return _advance_unnamed(leased, deleter)
    except (RefusedForSafety, TableMoved, UsageError) as refusal:
        _, found = leased.work.run(leased.run.id)
        if not _may_wait(found, refusal):
            raise
        gives_up = f"`firnline undo {quote(str(found.id))}` gives it up"
        waits = f"what it was refused for: {refusal.message}; {gives_up}"
        return replace(status_of(leased.work, found, waits), refusal=refusal)


def _may_wait(run: Run, refusal: FirnlineError) -> bool:
    """Tells whether a run has changed nothing, so that others can go on. An erasure that the table left behind is
    planned anew by who asks for it again.
    """
    if isinstance(refusal, TableMoved):
        return run.kind == ERASURE and run.state in OPEN
    return run.state is RunState.PLANNED


def _advance_unnamed(leased: LeasedRun, deleter: Deleter) -> RunStatus:
    run = leased.run
    only_waits = run.state is RunState.PLANNED and not run.is_meant
    if run.is_sealed or run.sealing.required or run.state in _PURGEABLE or only_waits:
        return advance(leased, deleter)
    return _status(
        leased, f"your word, for its record is not sealed with your key: `firnline resume {quote(str(run.id))}`"
    )


def purge_all(
    work: TableContext, lease: Lease, deleter: Deleter, *, meant: Callable[[Run], bool] = lambda run: True
) -> list[RunStatus]:
    """Returns the committed runs of the table, each purged where it may be, and those whose time to undo goes before.

    No other run is touched, nor one that is not `meant`: what was committed after such a one waits for it.
    """
    runs = list(filter(meant, work.runs(work.source.load())))
    due = [run for run in in_commit_order(runs) if run.state in _PURGEABLE]
    waiting = [run for run in runs if run.commit_due_ms is not None]
    purged = [_purge_told(LeasedRun(work, lease, run), deleter) for run in due]
    return [*purged, *(_advance_or_say_why(LeasedRun(work, lease, run), deleter) for run in waiting)]


def _purge_told(leased: LeasedRun, deleter: Deleter) -> RunStatus:
    with failures_told(leased.work, leased.run):
        return purge_only(leased, deleter)


def purge_only(leased: LeasedRun, deleter: Deleter) -> RunStatus:
    """Returns the run, purged where it may be. Raises UsageError unless it was committed, or only waited to be."""
    run = leased.run
    refuse_unsealed_run(run)
    if run.commit_due_ms is not None:
        return advance(leased, deleter)  # it was meant, and only waited to be called off
    if run.state not in _PURGEABLE and not run.is_finished:
        raise UsageError(f"{run.id} is {run.state}: only what is committed can be purged", hint="`firnline resume RUN`")
    return _carry_out(leased, run.stages_left, deleter)


def commit_only(leased: LeasedRun) -> RunStatus:
    """Returns the run, committed, and what its purge waits for. Raises UsageError if there is nothing to commit."""
    run = leased.run
    refuse_unsealed_run(run)
    if run.state not in OPEN:
        raise UsageError(f"{run.id} is {run.state}: there is nothing left to commit", hint="`firnline runs show RUN`")
    refuse_unapproved(leased.work, run)
    committed = _committed(_archived(leased))
    return _status(committed, None if committed.run.is_finished else _waits(committed))


def _status(leased: LeasedRun, waits: str | None = None) -> RunStatus:
    return status_of(leased.work, leased.run, waits)
