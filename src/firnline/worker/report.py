"""What a round of the worker did: table by table, for people and programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from firnline.errors import FirnlineError, Interrupted
from firnline.model.times import format_instant
from firnline.ops.runs.status import RunStatus
from firnline.plans.pages import Block, Grid, Hint, Line, Page, counted


@dataclass(frozen=True, slots=True)
class RoundStep:
    """What one step of a round did to a table: the run that it took, None where there was nothing to do; or why it came
    to nothing.
    """

    name: str
    table: str
    status: RunStatus | None = None
    problem: FirnlineError | None = None

    @property
    def is_bad(self) -> bool:
        """Whether an operator should look at it: a stop is not bad, what was begun goes on."""
        return self.problem is not None and not isinstance(self.problem, Interrupted)

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"step": self.name, "table": self.table}
        if self.status is not None:
            told |= {"run": self.status.id, "state": self.status.state.value, "waits_for": self.status.waits}
        return told if self.problem is None else {**told, "error": self.problem.to_json()}


@dataclass(frozen=True, slots=True)
class RoundReport:
    """All that a round did. `looked` counts the tables that were planned, `again_ms` is when the next one comes."""

    began_ms: int
    ended_ms: int
    steps: tuple[RoundStep, ...]
    looked: int
    again_ms: int
    stopped: bool = False

    @property
    def problems(self) -> tuple[RoundStep, ...]:
        return tuple(step for step in self.steps if step.is_bad)

    def to_json(self) -> dict[str, Any]:
        return {
            "began": format_instant(self.began_ms),
            "ended": format_instant(self.ended_ms),
            "looked_at": self.looked,
            "steps": [step.to_json() for step in self.steps],
            "stopped": self.stopped,
            "again": format_instant(self.again_ms),
        }

    def page(self) -> Page:
        rows = tuple((step.name, step.table, _said(step)) for step in self.steps)
        end = "stopped: the next round goes on" if self.stopped else "the round is done"
        told = f"{end}; {counted(self.looked, 'table')} looked at, {counted(len(self.problems), 'problem')}"
        blocks: list[Block] = [Grid(rows)] if rows else []
        hints = dict.fromkeys(step.problem.hint for step in self.problems if step.problem and step.problem.hint)
        return Page((*blocks, Line(told), *map(Hint, hints)))


def _said(step: RoundStep) -> str:
    if step.problem is not None:
        return f"{step.problem.kind}: {step.problem.message}"
    if step.status is None:
        return "nothing to do"
    waits = f", waits for {step.status.waits_told}" if step.status.waits else ""
    return f"{step.status.state}{waits}"


def next_run_ms(steps: Iterable[RoundStep], now_ms: int) -> int | None:
    """Returns when the first run may go on that waits for a time. One whose time has come, and that could not go on, is
    tried again with the next round.
    """
    runs = (step.status.run for step in steps if step.status is not None and not step.status.run.is_finished)
    due = [at for run in runs if (at := run.commit_due_ms or run.purge_due_ms) is not None and at > now_ms]
    return min(due, default=None)
