"""Runs as a person reads them, one in a few lines or several as a table: commands and `print` show the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import TYPE_CHECKING

from firnline.journal.events import RunState
from firnline.model.files import Tally
from firnline.model.names import is_location
from firnline.model.times import due_minute, second, tell_due
from firnline.plans.pages import Block, Grid, Hint, Line, Page, Tone, counted, number, size, tally
from firnline.plans.stages import in_words
from firnline.ports.formats import UndoWindow

if TYPE_CHECKING:
    from firnline.ops.runs.status import RunStatus

_HEADINGS = ("run", "table", "state", "grace ends", "snapshots", "files", "bytes", "")
"""A run is called by the instant of its plan, in UTC: the table fits a terminal because that is told once."""

_TONES = {
    RunState.COMMITTED: Tone.GOES,
    RunState.PURGING: Tone.GOES,
    RunState.UNDONE: Tone.KEPT,
    RunState.CANCELLED: Tone.KEPT,
}


def runs_page(runs: Sequence[RunStatus]) -> Page:
    return Page(tuple(runs_blocks(runs)))


def run_page(status: RunStatus) -> Page:
    """Returns where one run stands, what is still to come, and all that happened to it."""
    return Page((*run_blocks(status), *_stages(status), _events(status)))


def runs_blocks(runs: Sequence[RunStatus], none: str = "no runs") -> Iterator[Block]:
    if not runs:
        yield Line(none)
        return
    tones = tuple(Tone.REFUSED if each.refusal else _TONES.get(each.state) for each in runs)
    yield Grid(tuple(map(_row, runs)), _HEADINGS, frozenset({4, 5, 6}), tones, toned=2)
    if any(_can_be_undone(each) for each in runs):
        yield Hint("`firnline undo RUN` brings back what a run took out, until its purge starts")
    if any(each.state is RunState.COMMITTED for each in runs):
        yield Hint("`firnline purge` deletes the files of all whose grace has ended")


def _row(status: RunStatus) -> tuple[str, ...]:
    run, what = status.run, _files(status)
    by_location = is_location(run.id.table)
    from firnline.ops.runs.status import grace_end

    return (
        status.id if by_location else run.id.stamp, "" if by_location else run.id.table, status.state.value,
        grace_end(run), number(len(status.expired or run.plan["expire"])),
        number(what.files), size(what.bytes), _remark(status),
    )  # fmt: skip


def _files(status: RunStatus) -> Tally:
    """Returns what was deleted by a run that has ended; else what its list names."""
    if status.state is RunState.DONE:
        return status.outcomes.get("deleted", Tally())
    victims = status.run.plan["victims"]
    return Tally(int(victims["files"]), int(victims["bytes"]))


def _remark(status: RunStatus) -> str:
    """Returns what is not in the other columns: why a run was cancelled or refused, and what it waits for but grace."""
    if status.state is RunState.CANCELLED:
        return _why_cancelled(status)
    if status.refusal is not None:
        return f"refused: {status.refusal.message}"
    if status.run.commit_due_ms is not None:
        return f"commits at {due_minute(status.run.commit_due_ms)}"
    waits = status.waits_told or (
        "" if status.run.is_meant or status.state is not RunState.PLANNED else "`firnline commit`"
    )
    return "" if not waits or waits.startswith("the end of grace") else f"waits for {waits}"


def _why_cancelled(status: RunStatus) -> str:
    return str(status.run.events[-1].detail.get("why") or "")


def _can_be_undone(status: RunStatus) -> bool:
    return status.state is RunState.COMMITTED and status.run.undo is UndoWindow.AFTER_COMMIT


def run_blocks(status: RunStatus) -> Iterator[Block]:
    """Yields where one run stands, and what can be done about it."""
    run = status.run
    tone = Tone.REFUSED if status.refusal else _TONES.get(status.state)
    yield Line(f"{status.id}: {status.state}{_because(status)}", tone)
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
    if status.state is RunState.CANCELLED and _why_cancelled(status):
        return f", because {_why_cancelled(status)}"
    return f", waits for {status.waits_told}" if status.waits else ""


def _events(status: RunStatus) -> Grid:
    rows = tuple((str(each.number), second(each.at_ms), each.state.value) for each in status.run.events)
    return Grid(rows, ("event", "at (UTC)", "state"))


def _stages(status: RunStatus) -> Iterator[Block]:
    """Yields what is still to come, as the plan showed it."""
    yield from (Line(f"  will {in_words(stage)}") for stage in status.run.stages_left)
