"""Runs that take a part of what may go, the oldest first: a table that nobody expired for years shrinks in steps, and
its cap need not be lifted.

Which files go is decided by reachability, as always: a bound only lets more snapshots stay, and how many is tried out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from firnline.errors import RefusedForSafety
from firnline.ops.runs.decision import Settled
from firnline.plans.pages import counted
from firnline.plans.plan import Plan, share_removed
from firnline.plans.request import Request
from firnline.policy.reasons import Reason
from firnline.ports.abilities import FitsDecisions
from firnline.ports.formats import State, TableFormat

MOST_TRIES = 8
"""Each is a look at the table's files. So many find the bound to within half a percent of the snapshots that may go."""


def oldest_only(
    settled: Settled, table_format: TableFormat, state: State, request: Request, open_since_ms: int
) -> Settled:
    """Returns the decision by which only the oldest `request.oldest` of the snapshots go that may; each other one
    stays, with that reason, and so does a ref on it.
    """
    if request.oldest is None or request.drop:
        return settled
    decision = settled.decision
    by_age = sorted(decision.expired, key=lambda each: (state.graph[each].timestamp_ms, each))
    staying = set(by_age[request.oldest :])
    later = (Reason("at most", f"{request.at_most:.0%} goes at once, older ones first"),)
    narrower = replace(
        decision,
        kept={**decision.kept, **dict.fromkeys(staying, later)},
        expired=tuple(each for each in decision.expired if each not in staying),
        expired_refs=tuple(each for each in decision.expired_refs if _head(state, each) not in staying),
    )
    if isinstance(table_format, FitsDecisions):
        narrower = table_format.fitted(state, narrower, open_since_ms)
    return replace(settled, decision=narrower)


def _head(state: State, name: str) -> str | None:
    ref = state.refs.get(name)
    return None if ref is None else ref.snapshot


def most_within(plan: Plan, at_most: float, plan_oldest: Callable[[int], Plan]) -> int | None:
    """Returns how many of the oldest snapshots of a plan may go so that it removes no larger share of the table than
    `at_most`, and is not refused; None if all of them may. `plan_oldest` plans with so many.
    """
    if _fits(plan, at_most):
        return None
    fitting, too_many = 0, len(plan.expire)
    for _ in range(MOST_TRIES):
        if too_many - fitting <= 1:
            break
        middle = (fitting + too_many) // 2
        if _fits(plan_oldest(middle), at_most):
            fitting = middle
        else:
            too_many = middle
    return fitting


def refuse_more(plan: Plan, at_most: float) -> None:
    """Raises RefusedForSafety where a bounded plan removes more all the same: what goes with no snapshot at all."""
    if plan.refused is None and not _fits(plan, at_most):
        raise RefusedForSafety(
            f"more than {at_most:.0%} would go with the fewest snapshots that can go",
            hint="a larger share at most, or no bound",
        )


def _fits(plan: Plan, at_most: float) -> bool:
    return plan.refused is None and (plan.kept is None or share_removed(plan.kept.all, plan.victims.all)[1] <= at_most)


def bound_note(plan: Plan, every: int, at_most: float) -> str:
    """Returns what is said of a plan that was bounded."""
    left = every - len(plan.expire)
    return f"at most {at_most:.0%} goes: {counted(left, 'snapshot')} more may go and stay for a later run, oldest first"
