"""Which run a person means: by its whole name, by its stamp alone, as the last run of a table, or by asking once more
for what a run waits to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from firnline.app.many import AT_ONCE, on_tables
from firnline.app.places import Places
from firnline.errors import UsageError
from firnline.journal.events import RunState
from firnline.journal.layout import RunId, looks_like_stamp, names_run
from firnline.journal.runs import Run, in_commit_order
from firnline.model.files import FileKind, Tally, Totals
from firnline.model.names import is_pattern
from firnline.model.times import MINUTE_MS, tell_due
from firnline.plans.kinds import EXPIRY
from firnline.plans.plan import Plan
from firnline.plans.request import Request
from firnline.plans.stages import AwaitUndo
from firnline.ports.catalogs import TableName

_CLOCKS_MS = 5 * MINUTE_MS
"""How far the clock that an age was taken from may be from the one that the record was written by."""


def run_meant(places: Places, text: str) -> RunId:
    """Returns the run that a text names; of a bare stamp the one run that has it, of whatever table. Raises UsageError
    where there is none, or where several tables have it.
    """
    return _stamped(places, text) if looks_like_stamp(text) else RunId.parse(text)


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
        hint = "`firnline runs` shows them; of a table by its location, write LOCATION@STAMP"
        raise UsageError(f"no such run: {stamp}{rest}", hint=hint)
    if len(found) > 1:
        raise UsageError(f"several tables have a run {stamp}", hint=f"name one: {', '.join(name for name, _ in found)}")
    return found[0][1]


def run_to_undo(places: Places, text: str) -> RunId:
    """Returns the run that a text names; of a table the last one that was begun. Raises RefusedForSafety, as
    for the run itself, where that cannot be taken back: to undo an earlier one instead, for it was asked twice, would
    bring back what nobody meant. Raises UsageError where it took no snapshot out, and where there is none.
    """
    if names_run(text):
        return run_meant(places, text)
    if is_pattern(text):
        raise UsageError(f"undo takes one run or one table, no pattern: {text}", hint="`firnline runs` lists them")
    work = places.table_context(text)
    runs = work.runs(work.source.load())
    begun = _by_begin(runs)
    if not runs:
        raise UsageError(f"{text} has no run to undo", hint="`firnline runs` lists the runs of all tables")
    if not begun:
        raise UsageError(f"no run of {text} was begun", hint=_saved_only(runs))
    if begun[-1].is_finished or begun[-1].state is RunState.PURGING:
        from firnline.ops.runs.undo import too_late

        raise too_late(begun[-1], _earlier(begun))
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


def _saved_only(runs: Sequence[Run]) -> str:
    saved = [run for run in runs if not run.is_finished]
    if saved:
        return f"{saved[-1].id} is only a saved plan; `firnline undo {saved[-1].id.stamp}` calls it off"
    return "`firnline runs TABLE` lists its runs"


def _earlier(begun: Sequence[Run]) -> str:
    """Returns how to take back the latest open expiry before the last run; nothing if there is none."""
    open_ones = [run for run in begun[:-1] if run.kind == EXPIRY and not run.is_finished]
    before = next((run for run in reversed(open_ones) if run.state is not RunState.PURGING), None)
    return "" if before is None else f"`firnline undo {before.id.stamp}` takes back the one before, if it is meant"


def run_to_join(runs: Sequence[Run], request: Request, now_ms: int, *, searched: bool = False) -> Run | None:
    """Returns the run that waits to be called off and was asked for in the same words; None where there is none. Plans
    of the same snapshots would pile up otherwise, each as long as its time to undo. A record that another may have
    written is never meant.
    """
    waiting = [run for run in runs if run.kind == EXPIRY and run.commit_due_ms is not None and run.is_sealed]
    # 1. A plan that would be refused was saved and approved, or a branch that is to be dropped has a new commit.
    # 2. Its commit says: plan again. If the new plan joined it, nobody could.
    sound = [run for run in waiting if run.plan["refused"] is None and not run.request.drop]
    return next((run for run in sound if _says_the_same(run, request, now_ms, searched)), None)


def _says_the_same(run: Run, request: Request, now_ms: int, searched: bool) -> bool:
    """Tells whether a request asks for what the run was made for. An age is an instant by then, which moved on with the
    clock since; what grew old enough meanwhile goes with a later run. Another instant is another question.
    """
    words = [replace(each, older_than_ms=None, oldest=None) for each in (run.request, request)]
    then, now = run.request.older_than_ms, request.older_than_ms
    if words[0] != words[1] or (then is None) != (now is None):
        return False
    if run.search is not None and not searched:  # a search that found nothing left no word in its run
        return False
    if request.age_ms is None:
        return then == now
    moved_ms = 0 if then is None or now is None else now - then
    return 0 <= moved_ms <= now_ms - run.events[0].at_ms + _CLOCKS_MS


def joined(plan: Plan, run: Run, now_ms: int) -> Plan:
    """Returns the plan of what the run does that waited: nothing yet, or, if its time to undo is over, what it named
    and would still go.
    """
    due = run.commit_due_ms
    if due is not None and now_ms < due:
        note = f"{run.id} was asked for in the same words and waits: it commits from {tell_due(due)} on"
        nothing = replace(plan, expire=(), expire_refs=(), victims=Totals(), stages=(), refused=None, run=None)
        return replace(nothing, notes=(*plan.notes, note))
    named, refs = set(run.plan["expire"]), set(run.plan["expire_refs"])
    return replace(
        plan,
        expire=tuple(each for each in plan.expire if each.id in named),
        expire_refs=tuple(each for each in plan.expire_refs if each in refs),
        victims=_victims_of(run),
        stages=tuple(stage for stage in run.stages_left if not isinstance(stage, AwaitUndo)),
        notes=(*plan.notes, f"it joins {run.id}, whose time to undo is over; what that did not name goes later"),
    )


def _victims_of(run: Run) -> Totals:
    """Returns what a run has written down to delete, kind by kind."""
    kinds = run.plan["victims"]["by_kind"].items()
    return Totals({FileKind(kind): Tally(found["files"], found["bytes"]) for kind, found in kinds})
