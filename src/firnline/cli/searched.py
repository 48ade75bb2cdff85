"""What searches of several tables found, as one page: the most first, sums below, and reasons once for all alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import itemgetter

from firnline.app.lake_wide.runs import Carried
from firnline.cli.several import UNREACHED, is_unreached, sharing, stands, sums_of_carried, what_goes_on, when_due
from firnline.errors import Interrupted
from firnline.plans.answers import TableAnswer, what_failed
from firnline.plans.lake_wide import more_tables
from firnline.plans.orphans import OrphanPlan
from firnline.plans.pages import Block, Grid, Hint, Line, Page, counted, number, shortened, size

Searched = TableAnswer[Carried[OrphanPlan]]
_FAILED, _REFUSED, _STOPPED = "failed", "refused", "stopped"
_CLASSES = "`firnline orphans TABLE --dry-run` shows one of them class by class"
_REASONS = 10


def before_a_purge(plans: Sequence[TableAnswer[OrphanPlan]]) -> Page:
    """Returns what was found, for the question whether it may go."""
    found: list[Searched] = [
        TableAnswer(each.table, None if each.value is None else Carried(each.value), each.problem, each.of_catalog)
        for each in plans
    ]
    return Page(tuple(_found_blocks(found)))


def searched_blocks(answers: Sequence[Searched]) -> Iterator[Block]:
    """Yields what was found and what became of it."""
    yield from _found_blocks(answers)
    if any(each.value is not None and each.value.status is not None for each in answers):
        deleted = sums_of_carried(answers)["deleted"]
        yield Line(f"deleted now: {counted(deleted['files'], 'file')}, {size(deleted['bytes'])}")
    else:
        yield Line("nothing was changed")
    yield from when_due(answers)
    yield Hint(
        f"{_CLASSES}; `-v` gives each table a line here" if any(map(itemgetter(0), _alike(answers))) else _CLASSES
    )
    yield from what_goes_on(answers)


def _found_blocks(answers: Sequence[Searched]) -> Iterator[Block]:
    sums, listed = sums_of_carried(answers), sorted(answers, key=_place)
    alike = _alike(listed)
    apart = {id(each) for some, _ in alike for each in some}
    rows = [_row(each) for each in listed if id(each) not in apart]
    rows += [(more_tables(some), "", "", told) for some, told in alike if some]
    victims = sums["victims"]
    last = (counted(sums["tables"], "table"), number(victims["files"]), size(victims["bytes"]), "")
    yield Grid((*rows, last), ("table", "files", "bytes", ""), right=frozenset({1, 2}))
    yield from what_failed("not carried out: {}; not counted above", sums["failed"], sums["unread_catalogs"])
    yield from _reasons(answers)


def _alike(answers: Sequence[Searched]) -> list[tuple[list[Searched], str]]:
    """Returns the tables that share a line each, and what is told of them there."""
    kinds = ((_is_failed, _FAILED), (is_unreached, UNREACHED), (_is_idle, "nothing to remove"))
    return [(sharing(answers, is_one), told) for is_one, told in kinds]


def _place(each: Searched) -> tuple[bool, bool, int, str]:
    victims = 0 if each.value is None else each.value.plan.victims.all.bytes
    return each.problem is None, not _refusal(each), -victims, each.table


def _row(each: Searched) -> tuple[str, str, str, str]:
    if each.value is None or is_unreached(each):
        return each.table, "", "", _problem(each)
    victims, status = each.value.plan.victims.all, each.value.status
    state = _REFUSED if _refusal(each) else _problem(each) if each.problem else "" if status is None else stands(each)
    if not victims.files and not state:
        return each.table, "", "", ""
    return each.table, number(victims.files), size(victims.bytes), state


def _problem(each: Searched) -> str:
    return _STOPPED if isinstance(each.problem, Interrupted) else _FAILED


def _is_failed(each: Searched) -> bool:
    return _row(each)[1:] == ("", "", _FAILED)


def _is_idle(each: Searched) -> bool:
    """Tells whether nothing was found that could go, and nothing about the table is worth a line of its own."""
    return _row(each)[1:] == ("", "", "")


def _refusal(each: Searched) -> str:
    return "" if each.value is None else each.value.plan.refused or ""


def _reasons(answers: Sequence[Searched]) -> Iterator[Line]:
    """Yields why tables failed or are refused: each reason once, with one of its tables and how many have it."""
    first: dict[str, str] = {}
    times: Counter[str] = Counter()
    for each in answers:
        why = _refusal(each) if each.problem is None else each.problem.message
        if why and not isinstance(each.problem, Interrupted):  # a stop is told once, at the end
            first.setdefault(why, each.table)
            times[why] += 1
    for why, table in list(first.items())[:_REASONS]:
        others = f" and {counted(times[why] - 1, 'other')}" if times[why] > 1 else ""
        yield Line(f"{table}{others}: {shortened(why)}")
    if len(first) > _REASONS:
        yield Line(f"and {number(len(first) - _REASONS)} reasons more")
