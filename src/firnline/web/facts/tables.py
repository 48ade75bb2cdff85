"""All that there is to see of one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from firnline.errors import FirnlineError
from firnline.model.times import format_instant
from firnline.plans.in_force import PolicyInForce

if TYPE_CHECKING:
    from firnline.app.verbs.answers import TableHistory, TableRuns
    from firnline.lake import Lake
    from firnline.model.holds import Hold
    from firnline.ops.tiers.whereabouts import TableTiers
    from firnline.plans.graph.facts import SnapshotGraph
    from firnline.plans.plan import Plan

Part = TypeVar("Part")


@dataclass
class TableReport:
    """A table as it was at an instant. What could not be read is None, and `problems` say why, by the part's name."""

    table: str
    made_ms: int
    graph: SnapshotGraph | None = None
    plan: Plan | None = None
    policy: PolicyInForce | None = None
    holds: tuple[Hold, ...] | None = None
    tiers: TableTiers | None = None
    runs: TableRuns | None = None
    history: TableHistory | None = None
    problems: dict[str, FirnlineError] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns the contract of `report TABLE --json`: each part as its own command says it."""
        holds = None if self.holds is None else {"holds": [each.to_json() for each in self.holds]}
        parts = {
            "graph": self.graph,
            "plan": self.plan,
            "policy": self.policy,
            "tiers": self.tiers,
            "runs": self.runs,
            "history": self.history,
        }
        return {
            "table": self.table,
            "made_at": format_instant(self.made_ms),
            **{name: None if part is None else part.to_json() for name, part in parts.items()},
            "holds": holds,
            "problems": {name: problem.to_json() for name, problem in self.problems.items()},
        }


def table_report(lake: Lake, table: str, *, plan: bool = True) -> TableReport:
    """Returns the table. One part that cannot be read does not hide the others. Without `plan` neither the plan is made
    nor what tiers hold is counted: no file is looked for.

    Raises NoSuchTable where there is none of that name.
    """
    name = str(lake.places.source(table).name)
    found = TableReport(name, lake.places.clock())

    def part(called: str, read: Callable[[], Part]) -> Part | None:
        try:
            return read()
        except FirnlineError as problem:
            found.problems[called] = problem
            return None

    if plan:
        view = part("plan", lambda: lake.plan(name))
        found.plan = None if view is None else view.plan
        found.graph = None if view is None else view.graph
        if view is not None:
            view.planned.close()
        found.tiers = part("tiers", lambda: lake.tiers(name))
    else:
        found.graph = part("graph", lambda: lake.graph(name))
    found.policy = part("policy", lambda: policy_of(lake, name))
    found.holds = part("holds", lambda: lake.holds(name))
    found.runs = part("runs", lambda: lake.runs(name))
    found.history = part("history", lambda: lake.history(name))
    return found


def policy_of(lake: Lake, table: str) -> PolicyInForce:
    state, effective = lake.policy(table)
    return PolicyInForce(state.table, effective.policy.describe(state.native), effective)
