"""Runs that drop a tag or a branch with all that only it holds, and what a run takes away beside snapshots and refs."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from shlex import quote
from typing import Any

from firnline.errors import RefusedForSafety, UnsupportedFormat, UsageError
from firnline.model.holds import hold_tag
from firnline.model.snapshots import RefKind, SnapshotId
from firnline.ops.runs.decision import Settled
from firnline.plans.request import Request
from firnline.policy.decide import Decision
from firnline.policy.reasons import Reason
from firnline.ports.abilities import Consequences, Dropping, DropsBranches, SideObjects
from firnline.ports.formats import FenceKind, State, TableFormat

_TOLD = 5


def narrowed(settled: Settled, table_format: TableFormat, state: State, request: Request) -> Settled:
    """Returns the decision of a run that drops refs: these and all that only they hold go, and nothing else.

    Raises RefusedForSafety where a hold needs any of it; consumers of a branch go with the branch.
    """
    if not request.drop:
        return settled
    gone = dropping(table_format, state, set(request.drop))
    for hold in state.holds:
        if hold.snapshot in gone.snapshots and hold.in_force(settled.decision.now_ms):
            raise RefusedForSafety(
                f"{', '.join(request.drop)} cannot go: the hold {hold.name} is on {hold.snapshot}",
                hint=f"`firnline hold release {quote(state.table)} {quote(hold.name)}` ends it, if its time has come",
            )
    for name in request.drop:
        refuse_tag_of_hold(state, name)
    reason = (Reason("stays", f"this run drops {', '.join(request.drop)} and nothing else"),)
    decision = Decision(
        {each.id: reason for each in state.graph if each.id not in gone.snapshots},
        tuple(sorted(gone.snapshots, key=lambda each: (state.graph[each].timestamp_ms, each))),
        tuple(sorted(gone.refs)),
        settled.decision.now_ms,
    )
    return replace(settled, decision=decision, dropped=request.drop, seen=gone.seen)


def dropping(table_format: TableFormat, state: State, refs: Set[str]) -> Dropping:
    """Returns what goes with these refs. Where branches own nothing, that is tags alone: the snapshot of one is in the
    table without it, until the policy lets it go.

    Raises UsageError where there is none of that name, UnsupportedFormat for a branch that no run can drop.
    """
    if isinstance(table_format, DropsBranches):
        return table_format.dropping(state, refs)
    for name in sorted(refs):
        if name not in state.refs:
            raise UsageError(f"{state.table} has no ref {name!r}", hint="`firnline tag list TABLE` shows the tags")
        if state.refs[name].kind is RefKind.BRANCH:
            raise UnsupportedFormat(
                f"{name} is a branch of {state.table}, and no run drops a branch of {table_format.name} tables",
                hint="its engine drops it; the next `firnline expire` removes what only it held",
            )
    return Dropping(frozenset(), frozenset(refs), {name: str(state.refs[name].snapshot) for name in sorted(refs)})


def refuse_changed(plan: Mapping[str, Any], settled: Settled) -> None:
    """Raises RefusedForSafety unless what is dropped is what the plan saw: a branch that was dropped and made again, or
    a tag that was moved, while the question was open or the run lay still. It has the same name and the same numbers,
    and other rows.
    """
    planned = plan["seen"]
    came = sorted(settled.seen.keys() - planned.keys())
    other = sorted(name for name in planned if settled.seen.get(name) != planned[name])
    if settled.dropped and (came or other):
        told = f"{', '.join(came[:_TOLD])} came" if came else f"{', '.join(other[:_TOLD])} held something else"
        raise RefusedForSafety(
            f"{', '.join(settled.dropped)} moved on since the plan: {told}",
            hint="nothing was changed; plan again, if it is still to go",
        )


def refuse_gone_back(plan: Mapping[str, Any], settled: Settled, state: State) -> None:
    """Raises RefusedForSafety if the end of a branch that was to stay is gone since the plan, of a table whose commits
    are no compare-and-swap. A fast-forward takes it away first and copies the other branch after that: who drops the
    other one between the two leaves nothing of both.
    """
    if not settled.dropped or state.capabilities.fence is not FenceKind.NONE:
        return
    for kept in plan["keep"]:
        if kept["refs"] and kept["snapshot"] not in settled.decision.kept:
            raise RefusedForSafety(
                f"{', '.join(settled.dropped)} cannot go: {kept['snapshot']}, which {', '.join(kept['refs'])} named at "
                "the plan, is gone",
                hint="nothing was changed; a fast-forward or a rollback may be under way: plan again when it has ended",
            )


def refuse_tag_of_hold(state: State, name: str) -> None:
    """Raises UsageError if a tag is the one by which a hold keeps its snapshot."""
    if name in {hold_tag(hold.name) for hold in state.holds}:
        raise UsageError(f"the tag {name} belongs to a hold", hint="release the hold instead")


def consequences_of(table_format: TableFormat, state: State, settled: Settled) -> Consequences:
    """Returns what follows from a decision."""
    decision = settled.decision
    return _follow(table_format, state, settled, set(decision.expired), set(decision.expired_refs))


def going_beside(
    table_format: TableFormat, state: State, settled: Settled, snapshots: Set[SnapshotId], refs: Set[str]
) -> set[str]:
    """Returns what goes beside these snapshots and refs, in the state as it is now."""
    return {each.id for each in _follow(table_format, state, settled, snapshots, refs).going}


def _follow(
    table_format: TableFormat, state: State, settled: Settled, snapshots: Set[SnapshotId], refs: Set[str]
) -> Consequences:
    if not isinstance(table_format, SideObjects):
        return Consequences(frozenset(snapshots))
    return table_format.consequences(state, snapshots, refs, None if settled.dropped else settled.decision.now_ms)


def planned_beside(plan: Mapping[str, Any]) -> set[str]:
    """Returns what the plan took away beside snapshots and refs; plans of earlier versions knew of none."""
    return {f"{each['kind']} {each['name']}" for each in plan["beside"]["expire"]}
