"""Which run a person means: by its whole name, by its stamp alone, or as the last run of a table."""

from __future__ import annotations

from collections.abc import Sequence

from firnline.app.many import AT_ONCE, on_tables
from firnline.app.places import Places
from firnline.errors import UsageError
from firnline.journal.events import RunState
from firnline.journal.layout import RunId, is_stamp, names_run
from firnline.journal.runs import Run, in_commit_order
from firnline.model.times import format_instant
from firnline.plans.plan import EXPIRY
from firnline.ports.catalogs import TableName

_OVER = {
    RunState.UNDONE: "was already undone",
    RunState.CANCELLED: "was cancelled",
    RunState.DONE: "is purged: its files are gone",
    RunState.PURGING: "is being purged: its files are going",
}


def run_meant(places: Places, text: str) -> RunId:
    """Returns the run that a text names; of a bare stamp the one run that has it, of whatever table. Raises UsageError
    where there is none, or where several tables have it.
    """
    return _stamped(places, text) if is_stamp(text) else RunId.parse(text)


def _stamped(places: Places, stamp: str) -> RunId:
    def has_it(name: TableName) -> RunId | None:
        work = places.table_context(name)
        runs = work.runs(work.source.load())
        return next((run.id for run in runs if run.id.stamp == stamp), None)

    answers = list(on_tables(places, None, has_it, AT_ONCE, lambda: False))
    found = sorted({str(each.value): each.value for each in answers if each.value is not None}.items())
    if not found:
        unread = [each.table for each in answers if each.problem is not None]
        rest = f"; not looked at, since they cannot be read: {', '.join(unread)}" if unread else ""
        raise UsageError(
            f"no table of the configured catalogs has a run {stamp}{rest}",
            hint="of a table by its location, write LOCATION@STAMP",
        )
    if len(found) > 1:
        raise UsageError(f"several tables have a run {stamp}", hint=f"name one: {', '.join(name for name, _ in found)}")
    return found[0][1]


def run_to_undo(places: Places, text: str) -> RunId:
    """Returns the run that a text names; of a table the last one that was begun. Raises UsageError, naming it and what
    became of it, where it cannot be taken back: to undo an earlier one instead, for it was asked twice, would bring
    back what nobody meant. The same where it took no snapshot out.
    """
    if names_run(text):
        return run_meant(places, text)
    work = places.table_context(text)
    runs = work.runs(work.source.load())
    begun = _by_begin(runs)
    if not begun or begun[-1].is_finished or begun[-1].state is RunState.PURGING:
        raise UsageError(f"the last run of {text} cannot be undone", hint=_last_words(begun, runs))
    if begun[-1].kind != EXPIRY:
        last = begun[-1].id
        raise UsageError(
            f"the last run of {text} is no expiry: {last}", hint=f"`firnline undo {last.stamp}`, if it is meant"
        )
    return begun[-1].id


def _by_begin(runs: Sequence[Run]) -> list[Run]:
    """Returns the runs that were meant, those first that only wait for their commit last: they were begun after all
    that are committed. A plan that was only saved is no run that a person began.
    """
    tried = in_commit_order(list(runs))
    return [*tried, *(run for run in runs if run not in tried and run.is_meant)]


def _last_words(begun: Sequence[Run], runs: Sequence[Run]) -> str:
    if begun:
        last = begun[-1]
        at = format_instant(last.events[-1].at_ms)
        return f"its last one, {last.id}, {_OVER.get(last.state, f'is {last.state}')} ({at})"
    saved = [run for run in runs if not run.is_finished]
    if saved:
        return f"{saved[-1].id} is only a saved plan; `firnline undo {saved[-1].id.stamp}` calls it off"
    return "`firnline runs TABLE` lists its runs"
