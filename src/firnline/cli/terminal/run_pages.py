"""Runs as a person reads them: one in a few lines, several as one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firnline.cli.terminal.output import output_for
from firnline.errors import UsageError
from firnline.journal.events import RunState
from firnline.model.times import tell_due, tell_instant
from firnline.ops.runs.pages.blocks import run_blocks, runs_blocks
from firnline.plans.pages import Hint, Line, Page, counted, number

if TYPE_CHECKING:
    from firnline.journal.runs import Run
    from firnline.ops.runs.status import RunStatus

OPEN, ENDED = "open", "ended"
STATES = (OPEN, ENDED, *(each.value for each in RunState))


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
        return self.means(status.run)

    def means(self, run: Run) -> bool:
        names = {ENDED if run.is_finished else OPEN, run.state.value}
        return self._is_late_enough(run) and (not self.states or bool(names & set(self.states)))

    def none_of(self, runs: Sequence[RunStatus]) -> str | None:
        """Returns that none of some runs is shown, and how many are not; None where one is, or where there are none."""
        if not runs or any(map(self.has, runs)):
            return None
        late = [each for each in runs if self._is_late_enough(each.run)]
        if not late:
            return f"no run was planned since then; {counted(len(runs), 'run')} before"
        others = "1 is in another state" if len(late) == 1 else f"{number(len(late))} are in other states"
        return f"no run is {' or '.join(self.states)}; {others}"

    def _is_late_enough(self, run: Run) -> bool:
        return self.since_ms is None or run.events[0].at_ms >= self.since_ms


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
    blocks = list(run_blocks(listed[0]) if single else runs_blocks(listed, acted.none if is_whole else acted.none_read))
    if acted.deletes and (not_yet := _not_yet(listed)):
        blocks.insert(next(at for at, each in enumerate([*blocks, Hint("")]) if isinstance(each, Hint)), Line(not_yet))
    output_for(as_json).show(Page((*blocks, *([Hint(hint)] if hint else []))), facts)


def show_ended(run: RunStatus, as_json: bool) -> None:
    """Says that a run has ended before, and that nothing was done to it now."""
    ended = tell_instant(run.run.events[-1].at_ms)
    nothing = Line(f"nothing was done: this run has been {run.state} since {ended}")
    output_for(as_json).show(Page((nothing, *run_blocks(run))), run.to_json())


def _not_yet(runs: Sequence[RunStatus]) -> str | None:
    """Returns that no file was deleted, and when one will be, where every run waits, and one for an instant; None else.
    One whose own instant has passed may wait for another run: that instant would tell nothing.
    """
    told = [each.due_ms for each in runs if each.due_ms is not None]
    if not told or not all(map(_deleted_nothing, runs)):
        return None
    return f"nothing was deleted: {'it' if len(runs) == 1 else 'the first of them'} is due at {tell_due(min(told))}"


def _deleted_nothing(status: RunStatus) -> bool:
    return status.waits is not None and status.state in (RunState.PLANNED, RunState.COMMITTED)
