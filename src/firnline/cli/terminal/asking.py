"""Asking before a table is changed: what would happen, then one question with its numbers; and where nobody answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

import typer

from firnline.cli.terminal.progress import clean_line
from firnline.cli.terminal.writing import text_of
from firnline.errors import UsageError
from firnline.model.files import Tally
from firnline.model.times import format_duration
from firnline.plans.answers import TableAnswer
from firnline.plans.explain import explain
from firnline.plans.lake_wide import TablePlan, refusal_in, sums_of
from firnline.plans.orphans import OrphanPlan
from firnline.plans.pages import Block, Hint, Line, Page, counted, size, tally
from firnline.plans.plan import Plan
from firnline.plans.stages import AwaitGrace, AwaitUndo, Stage

_NOTHING_YET = "nothing was changed"


def confirming(yes: bool, as_json: bool) -> Callable[[Plan], None]:
    """Returns what asks before a plan is carried out; nothing where the answer is known."""
    return lambda plan: None if yes else ask(explain(plan), question_of(plan), as_json)


def ask(page: Page, question: str, as_json: bool) -> None:
    """Shows what would happen and asks; where nobody can answer, nothing is done. What a page says to one who only
    looks would contradict the question: no hints, and nothing of what was not changed.
    """
    refuse_mute(as_json)
    clean_line()
    print(text_of(Page(tuple(_before_a_question(page))), sys.stderr), file=sys.stderr)
    if not _is_yes(question):
        raise typer.Abort


def _is_yes(question: str) -> bool:
    """Tells whether the answer is yes. Ctrl-C and Ctrl-D leave the line of the question open: what is said next would
    stand on it.
    """
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        print(file=sys.stderr)
        raise


def _before_a_question(page: Page) -> Iterator[Block]:
    for block in page.blocks:
        if not isinstance(block, Hint) and not (isinstance(block, Line) and block.text.startswith(_NOTHING_YET)):
            yield block


def refuse_mute(as_json: bool) -> None:
    """Raises UsageError where nobody can be asked."""
    if as_json or not sys.stdin.isatty():
        raise UsageError("this changes the table", hint="add --yes to say that it is meant")


def question_of(plan: Plan) -> str:
    found = plan.orphans.victims.all if plan.orphans is not None and not plan.orphans.refused else Tally()
    searched = f"{tally(found)} that no table needs" if found.files else ""
    named = [_what(len(plan.expire), len(plan.expire_refs))] if plan.expire or plan.expire_refs or not searched else []
    what = " and ".join([*named, *filter(None, [searched])])
    return f"Remove {what} from {plan.table}? {_stay([plan.stages])}"


def question_of_several(plans: Sequence[TablePlan]) -> str:
    going = [each.value for each in plans if each.value and each.value.stages and refusal_in(each) is None]
    if len(going) == 1:
        return question_of(going[0])
    sums = sums_of(plans)
    freed = f"{counted(sums['victims']['files'], 'file')}, {size(sums['victims']['bytes'])}"
    what = f"Remove {counted(sums['expire'], 'snapshot')} from {counted(len(going), 'table')}, with {freed}?"
    return f"{what} {_stay([each.stages for each in going])}"


def question_of_search(plans: Sequence[TableAnswer[OrphanPlan]]) -> str:
    found = [each.value for each in plans if each.value is not None and each.value.victims.all.files]
    where = found[0].table if len(found) == 1 else counted(len(found), "table")
    what = tally(sum((each.victims.all for each in found), Tally()))
    return f"Remove {what}, from {where}? {_stay([each.stages for each in found])}"


def _what(snapshots: int, refs: int) -> str:
    named = [counted(snapshots, "snapshot")] if snapshots or not refs else []
    return " and ".join([*named, *([counted(refs, "ref")] if refs else [])])


def _stay(several: Sequence[Sequence[Stage]]) -> str:
    """Returns for how long what goes can still be had, if it is as long for all."""
    undo = {each.grace_ms for stages in several for each in stages if isinstance(each, AwaitUndo)}
    grace = {each.grace_ms for stages in several for each in stages if isinstance(each, AwaitGrace)}
    if len(undo) > 1 or len(grace) > 1:
        return "Files stay for each table's own grace."
    before = f"Nothing changes for {format_duration(undo.pop())}, then the files" if any(undo) else "Files"
    return f"{before} stay {format_duration(grace.pop())}." if any(grace) else f"{before} go at once."
