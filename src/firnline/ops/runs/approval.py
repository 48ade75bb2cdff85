"""A person's word on large runs: a policy may demand it before anything is changed (`approve-above`)."""

from __future__ import annotations

from shlex import quote

from firnline.errors import AwaitsApproval
from firnline.journal.events import RunState
from firnline.journal.runs import Run
from firnline.ops.runs.decision import policy_in_force
from firnline.ops.table.context import TableContext
from firnline.plans.kinds import ERASURE
from firnline.plans.pages import size
from firnline.plans.request import Request


def awaits_approval(work: TableContext, run: Run) -> str | None:
    """Returns how a run is approved that a person must look at before it changes anything; None for every other one.

    The policy of now counts, not that of the plan: who lowers the bound means the runs that wait, too. One that has
    begun goes on: a commit that was tried must be read back. An erasure was asked for by a person, as its record says.
    """
    if run.kind == ERASURE or run.state is not RunState.PLANNED or run.approval is not None:
        return None
    above = policy_in_force(work.source.load(), work.source.name, work.config, Request()).approve_above.value
    if above is None or run.plan["victims"]["bytes"] <= above:
        return None
    return f"`firnline approve {quote(str(run.id))} --by NAME`"


def refuse_unapproved(work: TableContext, run: Run) -> None:
    """Raises AwaitsApproval where a person must look at the run first."""
    how = awaits_approval(work, run)
    if how is not None:
        raise AwaitsApproval(
            f"{run.id} would remove {size(run.plan['victims']['bytes'])}: approve-above demands a person's word first",
            hint=f"{how}; nothing was changed",
        )
