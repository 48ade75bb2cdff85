"""Consenting to a search's plan, and calling it off: no table changes by either, only the run's own record."""

from __future__ import annotations

from firnline.errors import BlastRadiusExceeded, RefusedForSafety
from firnline.journal.lease import Lease
from firnline.journal.runs import Run
from firnline.journal.states import RunState
from firnline.ops.workplace import Workplace

_NOTHING: dict[str, object] = {"snapshots": [], "refs": {}}


def begin_grace(work: Workplace, lease: Lease, run: Run) -> Run:
    """Returns the run, its grace begun: what nobody needs now must still be needed by nobody when it ends."""
    if run.state is not RunState.PLANNED:
        return run
    if run.plan["refused"]:
        raise BlastRadiusExceeded(run.plan["refused"], hint="search again with a larger --blast-radius, if meant")
    lease.renew()
    return run.moved(work.store, RunState.COMMITTED, work.now(), removal=_NOTHING)


def call_off(work: Workplace, lease: Lease, run: Run) -> Run:
    """Returns the run, ended before it deleted anything. Raises once its purge has started."""
    lease.renew()
    match run.state:
        case RunState.PLANNED:
            return run.moved(work.store, RunState.CANCELLED, work.now(), why="called off")
        case RunState.COMMITTED | RunState.UNDOING:
            if run.state is RunState.COMMITTED:
                run = run.moved(work.store, RunState.UNDOING, work.now())
            return run.moved(work.store, RunState.UNDONE, work.now())
        case RunState.PURGING:
            raise RefusedForSafety(f"the purge of {run.id} has started", hint="what is gone cannot come back")
        case _:
            return run
