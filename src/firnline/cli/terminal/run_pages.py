"""Runs as a person reads them: one in a few lines, several as one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from firnline.cli.terminal.output import output_for
from firnline.errors import UsageError
from firnline.journal.events import FINISHED, RunState
from firnline.model.files import Tally
from firnline.model.names import is_location
from firnline.model.times import due_minute, minute, tell_due, tell_instant
from firnline.plans.pages import Block, Grid, Hint, Line, Page, Tone, counted, number, size, tally
from firnline.ports.formats import UndoWindow

if TYPE_CHECKING:
    from firnline.ops.runs.status import RunStatus

OPEN, ENDED = "open", "ended"
STATES = (OPEN, ENDED, *(each.value for each in RunState))
_HEADINGS = ("run", "table", "state", "planned (UTC)", "grace ends", "snapshots", "files", "bytes", "")
_TONES = {
    RunState.COMMITTED: Tone.GOES,
    RunState.PURGING: Tone.GOES,
    RunState.UNDONE: Tone.KEPT,
    RunState.CANCELLED: Tone.KEPT,
}


@dataclass(frozen=True, slots=True)
class ShownRuns:
    """Which runs are shown: of these states, `open` or `ended` among them, planned from an instant on; all if nothing
    is said.
    """

    states: tuple[str, ...] = ()
    since_ms: int | None = None

    def __post_init__(self) -> None:
        wrong = [each for each in self.states if each not in STATES]
        if wrong:
            raise UsageError(f"no run is ever {wrong[0]!r}", hint=f"--state is one of: {', '.join(STATES)}")

    def has(self, status: RunStatus) -> bool:
        ending = ENDED if status.state in FINISHED else OPEN
        late_enough = self.since_ms is None or status.run.events[0].at_ms >= self.since_ms
        return late_enough and (not self.states or bool({ending, status.state.value} & set(self.states)))


EVERY_RUN = ShownRuns()


@dataclass(frozen=True, slots=True)
class Acted:
    """What a command was to do with the runs that it shows: what it says where there are none, and where there are none
    in what could be read; whether it deletes.
    """

    none: str
    none_read: str
    deletes: bool = False


LOOKED = Acted("no runs", "no runs in what could be read")
PURGED = Acted(
    "nothing to purge: no run waits to delete its files", "nothing to purge in what could be read", deletes=True
)
RESUMED = Acted("nothing to resume: no run was begun and left", "nothing to resume in what could be read", deletes=True)


def show_runs(
    runs: Iterable[RunStatus],
    as_json: bool,
    single: bool = False,
    hint: str = "",
    acted: Acted = LOOKED,
    is_whole: bool = True,
) -> None:
    """Says where the runs stand, what was not done to them, then a hint. One run that was asked for by name is a JSON
    object of its own. `is_whole`: all that might have runs could be read.
    """
    listed = list(runs)
    facts = listed[0].to_json() if single else {"runs": [each.to_json() for each in listed]}
    blocks = list(run_blocks(listed[0]) if single else _table(listed, acted.none if is_whole else acted.none_read))
    if acted.deletes and (not_yet := _not_yet(listed)):
        blocks.insert(next(at for at, each in enumerate([*blocks, Hint("")]) if isinstance(each, Hint)), Line(not_yet))
    output_for(as_json).show(Page((*blocks, *([Hint(hint)] if hint else []))), facts)


def show_ended(run: RunStatus, as_json: bool) -> None:
    """Says that a run has ended before, and that nothing was done to it now."""
    ended = tell_instant(run.run.events[-1].at_ms)
    nothing = Line(f"nothing was done: this run has been {run.state} since {ended}")
    output_for(as_json).show(Page((nothing, *run_blocks(run))), run.to_json())


def _not_yet(runs: Sequence[RunStatus]) -> str | None:
    """Returns that no file was deleted, and when one will be, where every run still waits for an instant; None else."""
    due = [each.run.commit_due_ms or each.run.purge_due_ms for each in runs if _deleted_nothing(each)]
    told = [each for each in due if each is not None]
    if not told or len(told) < len(runs):
        return None
    return f"nothing was deleted: {'it' if len(runs) == 1 else 'the first of them'} is due at {tell_due(min(told))}"


def _deleted_nothing(status: RunStatus) -> bool:
    return status.waits is not None and status.state in (RunState.PLANNED, RunState.COMMITTED)


def _table(runs: Sequence[RunStatus], none: str) -> Iterator[Block]:
    if not runs:
        yield Line(none)
        return
    tones = tuple(Tone.REFUSED if each.refusal else _TONES.get(each.state) for each in runs)
    yield Grid(tuple(map(_row, runs)), _HEADINGS, frozenset({5, 6, 7}), tones, toned=2)
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
        minute(run.events[0].at_ms), grace_end(run), number(len(status.expired or run.plan["expire"])),
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
