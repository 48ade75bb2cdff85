"""What came of several tables: one line each, those that need a person first, and their sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from firnline.cli.terminal.manners import is_verbose
from firnline.cli.terminal.opening import stopped_after
from firnline.cli.terminal.output import exit_code_of, output_for
from firnline.errors import Interrupted
from firnline.journal.events import RunState
from firnline.model.files import Tally
from firnline.model.times import tell_due
from firnline.plans.answers import TableAnswer, counts_of, facts_of, what_failed
from firnline.plans.lake_wide import MOST_IDLE, more_tables
from firnline.plans.pages import Block, Grid, Hint, Line, Page, counted, number, shortened, size
from firnline.plans.plan import tally_json

if TYPE_CHECKING:
    from firnline.app.lake_wide.runs import Carried
    from firnline.ops.history.timeline import Timeline
    from firnline.plans.orphans import OrphanPlan
    from firnline.plans.plan import Plan

    AnyCarried = TableAnswer[Carried[Plan]] | TableAnswer[Carried[OrphanPlan]]
    Pages = Callable[[Sequence[Any]], Iterator[Block]]

Answered = TypeVar("Answered")

UNREACHED = "the stop came before them"
_ENDS = {RunState.PLANNED: "the time to undo ends, and commits begin,", RunState.COMMITTED: "grace ends"}
"""What a run in a state waits for that waits for an instant."""


def show_carried(answers: Sequence[AnyCarried], as_json: bool, page: Pages | None = None) -> int:
    """Shows the runs of several tables. Returns the exit code of the first that failed, was refused or stopped."""
    stopped_after(answers)
    listed = sorted(answers, key=_urgency)
    facts = {"tables": [_facts(each) for each in listed], "sums": sums_of_carried(listed)}
    output_for(as_json).show(Page(tuple((page or _carried_blocks)(listed))), facts)
    return exit_code_of(each.problem for each in answers)


def _urgency(each: AnyCarried) -> tuple[Any, ...]:
    return each.problem is None, -_victims(each).bytes, each.table


def _victims(each: AnyCarried) -> Tally:
    """Returns what goes; nothing of a run that was cancelled, since another one had taken all of it."""
    if each.value is None or (each.value.status is not None and each.value.status.state is RunState.CANCELLED):
        return Tally()
    return each.value.plan.victims.all


def _expired(each: AnyCarried) -> int:
    return 0 if each.value is None or each.value.status is None else len(each.value.status.expired)


def _deleted(each: AnyCarried) -> Tally:
    status = None if each.value is None else each.value.status
    return Tally() if status is None else status.outcomes.get("deleted", Tally())


def _facts(each: AnyCarried) -> dict[str, Any]:
    if each.value is None:
        return each.error_json()
    said = {"run": None, "state": None, **each.value.plan.to_json()}
    return {**each.error_json(), **said, **({} if each.value.status is None else each.value.status.to_json())}


def sums_of_carried(answers: Sequence[AnyCarried]) -> dict[str, Any]:
    fine = [each for each in answers if each.problem is None]
    counts = counts_of(answers)
    return {
        **counts,
        "failed": counts["tables"] - len(fine),
        "expired": sum(map(_expired, answers)),
        "victims": tally_json(sum(map(_victims, fine), Tally())),
        "deleted": tally_json(sum(map(_deleted, answers), Tally())),
    }


def _carried_blocks(answers: Sequence[AnyCarried]) -> Iterator[Block]:
    sums = sums_of_carried(answers)
    idle, unreached = sharing(answers, _is_idle), sharing(answers, is_unreached)
    apart = set(map(id, (*idle, *unreached)))
    rows = [_carried_row(each) for each in answers if id(each) not in apart]
    if unreached:
        rows.append((more_tables(unreached), "", "", "", UNREACHED))
    if idle:
        rows.append((more_tables(idle), "0", "0", size(0), "nothing to do"))
    victims = sums["victims"]
    last = (counted(sums["tables"], "table"), number(sums["expired"]), number(victims["files"]), size(victims["bytes"]))
    headings = ("table", "expired", "files", "bytes", "state")
    yield Grid((*rows, (*last, "")), headings, right=frozenset({1, 2, 3}))
    yield from what_failed("not carried out: {}; not counted above", sums["failed"], sums["unread_catalogs"])
    deleted = sums["deleted"]
    yield Line(f"deleted now: {counted(deleted['files'], 'file')}, {size(deleted['bytes'])}")
    yield from when_due(answers)
    if idle:
        yield Hint("`-v` gives those with nothing to do a line each, too")
    yield from what_goes_on(answers)


def what_goes_on(answers: Sequence[AnyCarried]) -> Iterator[Hint]:
    """Yields what can be done with the runs; nothing where there is none, or where all have come to their end."""
    if any(_goes_on(each) and not _has_ended(each) for each in answers):
        yield Hint("`firnline runs` shows each run; `firnline undo RUN` brings one back as long as it can be undone")
        yield Hint("`firnline purge` deletes the files of all of them, once grace is over")


def _goes_on(each: AnyCarried) -> bool:
    """Tells whether there is a run of the table, which was not called off."""
    status = None if each.value is None else each.value.status
    return status is not None and status.state is not RunState.CANCELLED


def _has_ended(each: AnyCarried) -> bool:
    return each.value is not None and each.value.status is not None and each.value.status.run.is_finished


def sharing(answers: Sequence[Answered], is_alike: Callable[[Answered], bool]) -> list[Answered]:
    """Returns the tables that share a line, since there are many of which the same is to be told."""
    alike = [each for each in answers if is_alike(each)]
    return alike if len(alike) > MOST_IDLE and not is_verbose() else []


def is_unreached(each: AnyCarried) -> bool:
    """Tells whether a stop came before anything was done to the table."""
    return isinstance(each.problem, Interrupted) and (each.value is None or each.value.status is None)


def _is_idle(each: AnyCarried) -> bool:
    """Tells whether there was nothing to do for the table."""
    return each.problem is None and each.value is not None and each.value.status is None and not _victims(each).files


def _carried_row(each: AnyCarried) -> tuple[str, ...]:
    why = "" if each.problem is None else shortened(each.problem.message)
    if each.value is None or (each.problem is not None and not _goes_on(each)):
        return (each.table, "", "", "", why)  # what it planned does not go
    victims = _victims(each)
    return (each.table, number(_expired(each)), number(victims.files), size(victims.bytes), why or stands(each))


def stands(each: AnyCarried) -> str:
    """Returns the state of the table's run in a few words; if there is no run, that nothing was changed."""
    status = None if each.value is None else each.value.status
    if status is None:
        return "nothing to do" if _is_idle(each) else "nothing was changed"
    waits = status.waits and status.due_ms is None  # an instant is told once, below the sums
    return f"{status.state}, waits for {status.waits_told}" if waits else str(status.state)


def when_due(answers: Sequence[AnyCarried]) -> Iterator[Line]:
    """Yields until when runs wait: the first and the last of each kind, so that the rows have a word and no instant."""
    runs = [each.value.status for each in answers if each.value is not None and each.value.status is not None]
    for state, ends in _ENDS.items():
        due = [each.due_ms for each in runs if each.state is state and each.due_ms is not None]
        if due:
            first, last = tell_due(min(due)), tell_due(max(due))
            yield Line(f"{ends} at {first}" if first == last else f"{ends} from {first} to {last}")


def show_timelines(answers: Sequence[TableAnswer[Timeline]], as_json: bool) -> int:
    """Shows the histories of several tables. Returns the exit code of the first of which something was unreadable."""
    listed = sorted(answers, key=lambda each: (each.problem is None, each.table))
    facts = {"tables": [facts_of(each) for each in listed]}
    output_for(as_json).show(Page(tuple(_timeline_blocks(listed))), facts)
    return exit_code_of(each.problem for each in answers)


def _timeline_blocks(answers: Sequence[TableAnswer[Timeline]]) -> Iterator[Block]:
    from firnline.ops.history.timeline import TURN_ON

    headings = ("table", "live", "expired", "first day", "last day", "purged", "")
    found = [each.value for each in answers if each.value is not None]
    live = number(sum(each.live for each in found))
    gone = "-" if all(each.is_blind for each in found) else number(sum(each.expired for each in found))
    purged = size(sum(_purged(each) for each in found))
    rows = [_timeline_row(each) for each in answers]
    last = (counted(counts_of(answers)["tables"], "table"), live, gone, "", "", purged, "")
    yield Grid((*rows, last), headings, right=frozenset({1, 2, 5}))
    if off := sum(not each.remembers for each in found):
        yield Line(f"history is off for {counted(off, 'table')}: which snapshots expire there is not remembered")
        yield Hint(TURN_ON)
    yield Hint("`firnline history TABLE` shows one of them day by day")


def _timeline_row(each: TableAnswer[Timeline]) -> tuple[str, ...]:
    why = "" if each.problem is None else shortened(each.problem.message)
    if each.value is None:
        return (each.table, "", "", "", "", "", why)
    days = each.value.days()
    ends = (days[0].day, days[-1].day) if days else ("", "")
    gone = "-" if each.value.is_blind else number(each.value.expired)
    return (each.table, number(each.value.live), gone, *ends, size(_purged(each.value)), why)


def _purged(timeline: Timeline) -> int:
    return sum(day.purged_bytes for day in timeline.days())
