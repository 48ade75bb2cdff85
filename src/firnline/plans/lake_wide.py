"""Plans of many tables as one page: the worst first, sums below; and the same as facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firnline.errors import FirnlineError
from firnline.model.files import Tally
from firnline.plans.pages import Block, Grid, Hint, Line, Page, counted, number, shortened, size
from firnline.plans.plan import Plan, tally_json

_HEADINGS = ("table", "snapshots", "would expire", "files", "bytes", "")


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The plan of one table of several, or why there is none."""

    table: str
    plan: Plan | None = None
    problem: FirnlineError | None = None

    @property
    def refusal(self) -> str | None:
        """Why nothing of this table would go; None if all of its plan would."""
        if self.plan is None:
            return "cannot be planned" if self.problem is None else self.problem.message
        return self.plan.refused if self.plan.conflict is None else self.plan.conflict.why

    @property
    def victims(self) -> Tally:
        return Tally() if self.plan is None else self.plan.victims.all

    def to_json(self) -> dict[str, Any]:
        if self.plan is not None:
            return {"error": None, **self.plan.to_json()}
        return {"table": self.table, "error": None if self.problem is None else self.problem.to_json()}


def sums_of(plans: Sequence[TablePlan]) -> Mapping[str, Any]:
    """Returns what the tables come to together. What a run would refuse is not counted as freed."""
    planned = [each for each in plans if each.plan is not None]
    free = [each.victims for each in planned if each.refusal is None]
    freed = Tally(sum(each.files for each in free), sum(each.bytes for each in free))
    return {
        "tables": len(plans),
        "failed": len(plans) - len(planned),
        "refused": sum(each.refusal is not None for each in planned),
        "snapshots": sum(len(each.plan.keep) + len(each.plan.expire) for each in planned if each.plan),
        "expire": sum(len(each.plan.expire) for each in planned if each.plan and each.refusal is None),
        "victims": tally_json(freed),
    }


def lake_wide_json(plans: Sequence[TablePlan]) -> dict[str, Any]:
    return {"tables": [each.to_json() for each in _worst_first(plans)], "sums": dict(sums_of(plans))}


def lake_wide_page(plans: Sequence[TablePlan]) -> Page:
    return Page(tuple(_blocks(plans)))


def _blocks(plans: Sequence[TablePlan]) -> Iterator[Block]:
    sums = sums_of(plans)
    rows = tuple(_row(each) for each in _worst_first(plans))
    last = (
        counted(sums["tables"], "table"), number(sums["snapshots"]), number(sums["expire"]),
        number(sums["victims"]["files"]), size(sums["victims"]["bytes"]), "",
    )  # fmt: skip
    yield Grid((*rows, last), _HEADINGS, right=frozenset({1, 2, 3, 4}))
    if sums["failed"]:
        yield Line(f"not planned: {counted(sums['failed'], 'table')}")
    if sums["refused"]:
        yield Line(f"a run would refuse: {counted(sums['refused'], 'table')}; not counted above")
    yield Line("nothing was changed")
    yield Hint("`firnline plan TABLE` shows one of them: its snapshots, and all of a reason that is cut here")


def _worst_first(plans: Sequence[TablePlan]) -> list[TablePlan]:
    """Returns those that need a person first, unreadable ones before refused ones; then those that free the most."""

    def place(each: TablePlan) -> tuple[Any, ...]:
        freed = each.victims
        return each.plan is not None, each.refusal is None, -freed.bytes, -freed.files, each.table

    return sorted(plans, key=place)


def _row(each: TablePlan) -> tuple[str, ...]:
    reason = shortened(each.refusal or "")
    if each.plan is None:
        return (each.table, "", "", "", "", reason)
    every = len(each.plan.keep) + len(each.plan.expire)
    victims = each.victims
    figures = (number(every), number(len(each.plan.expire)), number(victims.files), size(victims.bytes))
    return (each.table, *figures, reason)
