"""Runs as a person reads them, one in a few lines or several as a table: commands and `print` show the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import TYPE_CHECKING

from firnline.journal.events import RunState
from firnline.model.times import second, tell_due
from firnline.ops.runs.pages.listing import runs_grid, tone_of, why_cancelled
from firnline.plans.pages import Block, Grid, Hint, Line, Page, counted, tally
from firnline.plans.stages import in_words
from firnline.ports.formats import UndoWindow

if TYPE_CHECKING:
    from firnline.ops.runs.status import RunStatus


def runs_page(runs: Sequence[RunStatus]) -> Page:
    return Page(tuple(runs_blocks(runs)))


def run_page(status: RunStatus) -> Page:
    """Returns where one run stands, what is still to come, and all that happened to it."""
    return Page((*run_blocks(status), *_stages(status), _events(status)))


def runs_blocks(runs: Sequence[RunStatus], none: str = "no runs") -> Iterator[Block]:
    if not runs:
        yield Line(none)
        return
    yield runs_grid(runs)
    if any(_can_be_undone(each) for each in runs):
        yield Hint("`firnline undo RUN` brings back what a run took out, until its purge starts")
    if any(each.state is RunState.COMMITTED for each in runs):
        yield Hint("`firnline purge` deletes the files of all whose grace has ended")


def _can_be_undone(status: RunStatus) -> bool:
    return status.state is RunState.COMMITTED and status.run.undo is UndoWindow.AFTER_COMMIT


def run_blocks(status: RunStatus) -> Iterator[Block]:
    """Yields where one run stands, and what can be done about it."""
    run = status.run
    yield Line(f"{status.id}: {status.state}{_because(status)}", tone_of(status))
    if status.expired and status.state not in (RunState.UNDONE, RunState.CANCELLED):
        refs = f", {counted(len(status.expired_refs), 'ref')}" if status.expired_refs else ""
        yield Line(f"  expired: {counted(len(status.expired), 'snapshot')}{refs}")
    if status.outcomes:
        yield Grid(tuple((outcome, tally(each)) for outcome, each in status.outcomes.items()))
    if status.left_alone:
        yield Line(f"  left alone, since created again: {', '.join(status.left_alone)}")
    named = quote(status.id)
    if run.commit_due_ms is not None:
        due = tell_due(run.commit_due_ms)
        yield Hint(f"`firnline undo {named}` calls it off until {due}; `firnline commit {named}` does not wait")
    if _can_be_undone(status):
        yield Hint(f"`firnline undo {named}` brings everything back until the purge starts")
    if status.state is RunState.COMMITTED:
        ends = "" if run.purge_due_ms is None else f", from {tell_due(run.purge_due_ms)} on"
        yield Hint(f"`firnline purge {named}` deletes the files{ends}")


def _because(status: RunStatus) -> str:
    if status.state is RunState.CANCELLED and why_cancelled(status):
        return f", because {why_cancelled(status)}"
    return f", waits for {status.waits_told}" if status.waits else ""


def _events(status: RunStatus) -> Grid:
    rows = tuple((str(each.number), second(each.at_ms), each.state.value) for each in status.run.events)
    return Grid(rows, ("event", "at (UTC)", "state"))


def _stages(status: RunStatus) -> Iterator[Block]:
    """Yields what is still to come, as the plan showed it."""
    yield from (Line(f"  will {in_words(stage)}") for stage in status.run.stages_left)
