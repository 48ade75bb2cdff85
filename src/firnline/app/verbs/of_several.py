"""What verbs on several tables return: each still is what it was, and a notebook shows it as one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from firnline.app.lake_wide.runs import Carried
from firnline.ops.history.timeline import Timeline
from firnline.ops.looking.check import Checked
from firnline.plans.answers import Found, TableAnswer
from firnline.plans.orphans import OrphanPlan
from firnline.plans.pages import counted, number, tally
from firnline.plans.plan import Plan


class ComingAnswers(Iterator[TableAnswer[Found]]):
    """Answers, table by table as they come; none is kept for who goes through them. A notebook waits for all."""

    def __init__(self, answers: Iterator[TableAnswer[Found]]) -> None:
        self._coming = answers

    def __repr__(self) -> str:
        """Returns what this is and how to use it: who looks at it at a prompt has not asked for a lake's plans yet."""
        return "<answers, table by table as they come: `for answer in …`, or list(…) keeps them>"

    def __next__(self) -> TableAnswer[Found]:
        return next(self._coming)

    def _repr_html_(self) -> str:
        found = list(self._coming)
        self._coming = iter(found)
        return several_html(found)


class TableAnswers(list[TableAnswer[Found]]):
    """Answers: a list, in the order of the tables."""

    def _repr_html_(self) -> str:
        return several_html(self)


def several_html(answers: Sequence[TableAnswer[Any]]) -> str:
    """Returns a row for each table: what was found in a few words, or why nothing was."""
    from firnline.plans.html.charts import GOES, STAYS, Share, share_bar
    from firnline.plans.html.markup import card, paragraph, table

    failed = sum(each.problem is not None for each in answers)
    answered = len(answers) - failed
    shares = [Share("answered", answered, number(answered), STAYS), Share("failed", failed, number(failed), GOES)]
    rows = (
        (each.table, "; ".join(_said(each.value)), each.problem.message if each.problem else "") for each in answers
    )
    shown = table(("table", "found", "problem"), rows) if answers else paragraph("no tables")
    return card(counted(len(answers), "table"), share_bar("tables", shares), shown)


def _said(value: object) -> Iterable[str]:
    """Yields what a verb found of one table."""
    match value:
        case Plan():
            yield f"keep {number(len(value.keep))}, expire {number(len(value.expire))}"
            yield tally(value.victims.all)
            if value.refused:
                yield f"refused: {value.refused}"
        case OrphanPlan():
            yield f"nothing needs {tally(value.victims.all)}"
        case Checked():
            yield "every file is there" if value.sound else counted(value.presence.faults, "fault")
        case Timeline():
            yield value.counted_snapshots
        case Carried(plan=plan, status=status):
            yield from _said(plan)
            yield from () if status is None else (f"{status.id}: {status.state}",)
        case list():
            yield from (f"{each.id}: {each.state}" for each in value)
