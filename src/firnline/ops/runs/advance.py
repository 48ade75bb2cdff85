"""Carrying runs on: from wherever a run's record says it stands to as far as it may go now."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import Any, assert_never

from firnline.errors import RefusedForSafety, UsageError
from firnline.journal.events import RunState
from firnline.journal.lease import Lease
from firnline.journal.outcomes import outcome_totals
from firnline.journal.runs import Run, in_commit_order, refuse_unsealed_run
from firnline.model.removals import Removal
from firnline.model.times import format_instant
from firnline.ops.orphans.guard import LakeGuard
from firnline.ops.orphans.plan import begin_grace, call_off
from firnline.ops.orphans.scope import Prefix
from firnline.ops.runs.commit import commit_landed, commit_run
from firnline.ops.runs.guard import Guard, TableGuard, reachable_since_plan
from firnline.ops.runs.purge import Deleter, blocked_by, purge_run, waits_for_grace
from firnline.ops.runs.undo import undo_landed, undo_run
from firnline.ops.table.context import TableContext
from firnline.plans.orphans import ORPHANS
from firnline.ports.catalogs import StepwiseCommit

_PURGEABLE = (RunState.COMMITTED, RunState.PURGING)
_HALFWAY = (RunState.COMMITTING, RunState.UNDOING)


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Where a run stands now, and what it waits for."""

    run: Run
    waits: str | None
    facts: dict[str, Any]


def advance(work: TableContext, lease: Lease, run: Run, deleter: Deleter) -> RunStatus:
    """Returns the run as far as it may go now: committed if it was meant, purged if its grace is over."""
    refuse_unsealed_run(run)
    match run.state:
        case RunState.PLANNED | RunState.ARCHIVED if not run.is_meant:
            return report(work, run, f"`firnline commit {quote(str(run.id))}`")
        case RunState.PLANNED | RunState.ARCHIVED if called_off_until(run, work.now()):
            return report(work, run, called_off_until(run, work.now()))
        case RunState.PLANNED | RunState.ARCHIVED | RunState.COMMITTING:
            return _purge_if_due(work, lease, _committed(work, lease, run), deleter)
        case RunState.COMMITTED | RunState.PURGING:
            return _purge_if_due(work, lease, run, deleter)
        case RunState.UNDOING:
            return report(work, undo(work, lease, run))
        case RunState.DONE | RunState.UNDONE | RunState.CANCELLED:
            return report(work, run)
        case _:
            assert_never(run.state)


def _purge_if_due(work: TableContext, lease: Lease, run: Run, deleter: Deleter) -> RunStatus:
    """Purges what may be purged now; runs of one table go in the order of their commits."""
    if run.is_finished:
        return report(work, run)
    waits = _waits(work, run)
    return (
        report(work, run, waits) if waits else report(work, purge_run(work, lease, run, deleter, _guard_of(work, run)))
    )


def _waits(work: TableContext, run: Run) -> str | None:
    earlier = blocked_by(run, work.runs(work.source.load()))
    if earlier is not None:
        return f"the earlier run {earlier.id}, which is {earlier.state}"
    grace = waits_for_grace(run, work.now())
    return f"the end of grace at {grace}" if grace and run.state is RunState.COMMITTED else None


def called_off_until(run: Run, now_ms: int) -> str | None:
    """Returns what a run waits for that can only be undone before its commit; None where that time is over."""
    due = run.commit_due_ms
    return f"the end of the time to undo at {format_instant(due)}" if due is not None and now_ms < due else None


def _committed(work: TableContext, lease: Lease, run: Run) -> Run:
    return begin_grace(work, lease, run) if run.kind == ORPHANS else commit_run(work, lease, run)


def undo(work: TableContext, lease: Lease, run: Run) -> Run:
    """Returns the run, undone or called off. Raises once its purge has started."""
    refuse_unsealed_run(run)
    return call_off(work, lease, run) if run.kind == ORPHANS else undo_run(work, lease, run)


def _guard_of(work: TableContext, run: Run) -> Guard:
    if isinstance(work.source, Prefix) and run.kind != ORPHANS:
        raise RefusedForSafety(f"{run.id} is a run on a table, and there is only a folder", hint="plan again")
    guard = LakeGuard if run.kind == ORPHANS else TableGuard
    return guard(work, run, reachable_since_plan(work, run))


def settle_halfway_runs(work: TableContext, lease: Lease, run: Run) -> None:
    """Reads back every other run that stopped in the middle of a commit or an undo, before this one acts.

    Afterwards the table's log may have forgotten them, and what they took out could look like this run's work.
    """
    state = work.source.load()
    for other in work.runs(state):
        if other.kind == ORPHANS:
            continue
        if other.id.stamp != run.id.stamp and other.state in _HALFWAY:
            _refuse_hearsay(work, other)
        if other.id.stamp != run.id.stamp and other.state is RunState.COMMITTING:
            commit_landed(work, lease, other)
        elif other.id.stamp != run.id.stamp and other.state is RunState.UNDOING:
            undo_landed(work, lease, other)


def _refuse_hearsay(work: TableContext, run: Run) -> None:
    """Raises where an undo, or a commit of several requests, would be carried on by a record that is not
    sealed: it says what to write and what to take away. Of any other commit the catalog tells whether it landed.
    """
    refuse_unsealed_run(run)
    says_all = run.state is RunState.UNDOING or isinstance(work.source.commits, StepwiseCommit)
    if not run.is_ours and says_all:
        raise RefusedForSafety(
            f"{run.id} stopped halfway, and its record is not sealed with your key",
            hint=f"if you know that run, `firnline resume {quote(str(run.id))}` carries it on",
        )


def advance_all(work: TableContext, lease: Lease, deleter: Deleter) -> list[RunStatus]:
    """Returns every unfinished run of the table, each as far as it may go now, in the order of their commits.

    What changes the table by a record that is not sealed waits until the operator names that run.
    """
    runs = work.runs(work.source.load())
    tried = in_commit_order(runs)
    waiting = [run for run in runs if run not in tried]
    due = [run for run in (*tried, *waiting) if not run.is_finished]
    return [_advance_unnamed(work, lease, run, deleter) for run in due]


def _advance_unnamed(work: TableContext, lease: Lease, run: Run, deleter: Deleter) -> RunStatus:
    if run.is_ours or run.sealing.required or run.state in _PURGEABLE or _only_waits(run):
        return advance(work, lease, run, deleter)
    return report(
        work, run, f"your word, for its record is not sealed with your key: `firnline resume {quote(str(run.id))}`"
    )


def _only_waits(run: Run) -> bool:
    return run.state in (RunState.PLANNED, RunState.ARCHIVED) and not run.is_meant


def purge_all(work: TableContext, lease: Lease, deleter: Deleter) -> list[RunStatus]:
    """Returns the committed runs of the table, each purged where it may be, and those whose time to undo goes before.

    No other run is touched.
    """
    runs = work.runs(work.source.load())
    due = [run for run in in_commit_order(runs) if run.state in _PURGEABLE]
    waiting = [run for run in runs if run.commit_due_ms is not None]
    purged = [purge_only(work, lease, run, deleter) for run in due]
    return [*purged, *(_advance_unnamed(work, lease, run, deleter) for run in waiting)]


def purge_only(work: TableContext, lease: Lease, run: Run, deleter: Deleter) -> RunStatus:
    refuse_unsealed_run(run)
    if run.commit_due_ms is not None:
        return advance(work, lease, run, deleter)  # it was meant, and only waited to be called off
    if run.state not in _PURGEABLE and not run.is_finished:
        raise UsageError(f"{run.id} is {run.state}: only what is committed can be purged", hint="`firnline resume RUN`")
    return _purge_if_due(work, lease, run, deleter)


def commit_only(work: TableContext, lease: Lease, run: Run) -> RunStatus:
    refuse_unsealed_run(run)
    if run.state not in (RunState.PLANNED, RunState.ARCHIVED, RunState.COMMITTING):
        raise UsageError(f"{run.id} is {run.state}: there is nothing left to commit", hint="`firnline runs show RUN`")
    committed = _committed(work, lease, run)
    return report(work, committed, None if committed.is_finished else _waits(work, committed))


def report(work: TableContext, run: Run, waits: str | None = None) -> RunStatus:
    """Returns the run with the facts that people and programs read."""
    removal = run.removal or Removal()
    totals = outcome_totals(work.store, run.folder)
    due = run.purge_due_ms
    facts: dict[str, Any] = {
        "run": str(run.id),
        "kind": run.kind,
        "table": run.plan["table"],
        "state": run.state.value,
        "waits_for": waits,
        "planned_at": format_instant(run.events[0].at_ms),
        "undo": run.undo.value,
        "commit_due": None if run.commit_due_ms is None else format_instant(run.commit_due_ms),
        "grace_ends": None if due is None else format_instant(due),
        "planned": {"snapshots": len(run.plan["expire"]), "victims": run.plan["victims"]},
        "expired": list(removal.ids),
        "expired_refs": sorted(removal.refs),
        "outcomes": {kind: {"files": tally.files, "bytes": tally.bytes} for kind, tally in totals.items()},
        "events": [
            {"number": each.number, "at": format_instant(each.at_ms), "state": each.state.value} for each in run.events
        ],
        "left_alone": list(run.events[-1].detail.get("left_alone") or ()),
    }
    return RunStatus(run, waits, facts)
