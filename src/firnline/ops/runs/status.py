"""Where a run stands: what people and programs read of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firnline.errors import FirnlineError
from firnline.journal.events import Event, RunState
from firnline.journal.runs import Run
from firnline.model.files import Tally
from firnline.model.removals import Removal
from firnline.model.snapshots import SnapshotId
from firnline.model.times import due_minute, format_instant, minute, tell_due, tell_dues
from firnline.ops.table.context import TableContext
from firnline.plans.plan import tally_json
from firnline.plans.stages import stages_json


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Where a run stands now, what it waits for, and what became of the files on its list. `refusal`: why it could not
    even begin, although its time had come.
    """

    run: Run
    waits: str | None
    outcomes: Mapping[str, Tally]
    refusal: FirnlineError | None = None

    @property
    def id(self) -> str:
        """The run's name, as every command takes it."""
        return str(self.run.id)

    @property
    def state(self) -> RunState:
        return self.run.state

    @property
    def expired(self) -> tuple[SnapshotId, ...]:
        """The snapshots that were really committed away; none before the commit."""
        return tuple((self.run.removal or Removal()).ids)

    @property
    def expired_refs(self) -> tuple[str, ...]:
        return tuple(sorted((self.run.removal or Removal()).refs))

    @property
    def left_alone(self) -> tuple[str, ...]:
        """What an undo did not bring back, because it was created again."""
        return tuple(self.run.events[-1].detail.get("left_alone") or ())

    @property
    def waits_told(self) -> str:
        """What the run waits for, as a person is told it; empty where it waits for nothing."""
        return tell_dues(self.waits or "")

    @property
    def due_ms(self) -> int | None:
        """The instant that the run waits for: the end of its time to undo, or of its grace; None if it waits for
        something else, or for nothing.
        """
        ends = {"the end of the time to undo": self.run.commit_due_ms, "the end of grace": self.run.purge_due_ms}
        return next((due for words, due in ends.items() if (self.waits or "").startswith(words)), None)

    def to_json(self) -> dict[str, Any]:
        """Returns the contract of `runs --json`: instants are ISO 8601, ids are strings."""
        run = self.run
        return {
            "run": self.id,
            "kind": run.kind,
            "table": run.plan["table"],
            "state": run.state.value,
            "waits_for": self.waits,
            "approval": _approval(run.approval),
            "planned_at": format_instant(run.events[0].at_ms),
            "undo": run.undo.value,
            "commit_due": _instant(run.commit_due_ms),
            "grace_ends": _instant(run.purge_due_ms),
            "planned": {"snapshots": len(run.plan["expire"]), "victims": run.plan["victims"]},
            "stages_left": stages_json(run.stages_left),
            "expired": list(self.expired),
            "expired_refs": list(self.expired_refs),
            "outcomes": {kind: tally_json(each) for kind, each in self.outcomes.items()},
            "events": [
                {"number": each.number, "at": format_instant(each.at_ms), "state": each.state.value}
                for each in run.events
            ],
            "left_alone": list(self.left_alone),
        }

    def __str__(self) -> str:
        from firnline.ops.runs.pages.blocks import run_page

        return run_page(self).to_text()

    def _repr_html_(self) -> str:
        from firnline.ops.html.runs import run_html

        return run_html(self)


def status_of(work: TableContext, run: Run, waits: str | None = None) -> RunStatus:
    from firnline.journal.outcomes import outcome_totals

    return RunStatus(run, waits, outcome_totals(work.store, run.folder))


def grace_end(run: Run) -> str:
    """Returns when the grace of a run's files ends or has ended, as every table of runs tells it; nothing before the
    commit, and where all of it came back.
    """
    due = run.purge_due_ms
    if due is None or run.state is RunState.UNDONE:
        return ""
    return minute(due) if run.is_finished else due_minute(due)


def waiting_note(run: Run) -> str:
    """Returns what one who plans should know of a run on the same table that has not ended."""
    if run.state is RunState.PLANNED and not run.is_meant:
        return f"{run.id} is saved and waits for `firnline commit`; `firnline undo` calls it off"
    if run.commit_due_ms is not None:
        return f"{run.id} waits to be called off; it commits from {tell_due(run.commit_due_ms)} on"
    if run.state is RunState.COMMITTED and run.purge_due_ms is not None:
        took = len((run.removal or Removal()).ids)
        ends = tell_due(run.purge_due_ms)
        return f"{run.id} took out {took:,} snapshots; what it frees is still there and goes from {ends} on"
    return f"{run.id} is {run.state}; `firnline resume` goes on with it"


def _approval(event: Event | None) -> dict[str, Any] | None:
    if event is None:
        return None
    return {"by": event.detail["by"], "note": event.detail.get("note"), "at": format_instant(event.at_ms)}


def _instant(at_ms: int | None) -> str | None:
    return None if at_ms is None else format_instant(at_ms)
