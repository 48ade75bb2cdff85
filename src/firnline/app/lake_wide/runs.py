"""Runs of many tables, planned before any of them is carried out: one question, and a `resume` for the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from firnline.app.many import on_each
from firnline.app.places import Places
from firnline.app.runs import Leave, Runs
from firnline.errors import FirnlineError, Interrupted
from firnline.ops.runs.status import RunStatus
from firnline.plans.answers import Found, TableAnswer
from firnline.ports.progress import Progress

AnyPlan = TypeVar("AnyPlan")


@dataclass(frozen=True, slots=True)
class Proposed(Generic[AnyPlan]):
    """The plan of one table, the run that it was saved as if there is anything to do, and why nothing may be done.
    `unsearched` is what kept its folders from being searched, where that was asked for. `joins`: the run was meant
    before, and stays whatever the answer is now. `waits`: its time to undo is not over, so that it is only looked at.
    """

    plan: AnyPlan
    run: str | None
    refusal: FirnlineError | None = None
    unsearched: FirnlineError | None = None
    joins: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Carried(Generic[AnyPlan]):
    """What became of one table: its plan, and where its run stands; None if there was nothing to do, or no way to."""

    plan: AnyPlan
    status: RunStatus | None = None
    unsearched: FirnlineError | None = None


@dataclass(frozen=True, slots=True)
class LakeRuns:
    """Carries out saved plans of many tables, so many side by side."""

    places: Places
    runs: Runs
    at_once: int

    def carry_out(
        self,
        proposed: Sequence[TableAnswer[Proposed[AnyPlan]]],
        confirm: Callable[[Sequence[TableAnswer[AnyPlan]]], bool],
        leave: Leave,
    ) -> list[TableAnswer[Carried[AnyPlan]]]:
        """Returns what became of each table. `confirm` is shown all plans: they are carried out if it returns True,
        wait as they were saved if not, and are called off if it raises.

        Every run is approved before the first is carried out: whatever ends this process, `resume` does the rest.
        """
        waiting = [run for each in proposed if (run := _run_of(each, joins=False)) is not None]
        meant = [run for each in proposed if (run := _run_of(each, joins=True)) is not None]
        looked = [run for each in proposed if (run := _run_of(each, joins=True, waits=True)) is not None]
        plans = [_plan_of(each) for each in proposed]
        with self.calling_off(waiting, "declined at the question"):
            is_meant = confirm(plans)
        if not is_meant:
            saved = self._each([*waiting, *meant, *looked], self.runs.named, "its plan waits: `firnline commit RUN`")
            return [_carried(each, saved) for each in proposed]
        approved = self._each(waiting, self._approved, "its plan was not approved, and waits: `firnline commit RUN`")
        going = [run for run, answer in approved.items() if answer.problem is None]
        ended = self._advanced([*going, *meant], leave)
        seen = self._each(looked, self.runs.named, "it waits as it was")
        return [_carried(each, {**approved, **ended, **seen}) for each in proposed]

    def _approved(self, run: str) -> RunStatus:
        self.runs.approve(run)
        return self.runs.named(run)

    def _advanced(self, going: Sequence[str], leave: Leave) -> dict[str, TableAnswer[RunStatus]]:
        """Returns the answer for each run, with its status at the end if it was begun. The status of one that failed or
        was stopped under way is read again, for its commit may have been made.
        """
        begun: list[str] = []

        def advance(run: str) -> RunStatus:
            begun.append(run)
            return self.runs.advance(run, leave)

        ended = self._each(going, advance, "`firnline resume` goes on with every table")
        broken = [run for run in begun if ended[run].problem is not None]
        stands = on_each(broken, self.runs.named, self.at_once, lambda: False, self.places.progress)
        return {**ended, **{run: replace(ended[run], value=now.value) for run, now in zip(broken, stands, strict=True)}}

    @contextmanager
    def calling_off(self, waiting: Sequence[str], why: str) -> Iterator[None]:
        """Leaves no plan behind that nobody wants, whatever ends the block but its own end: those are called off that
        are in the list by then, and their records say why. One that cannot be called off waits, and does no harm.
        """

        def call_off(run: str) -> None:
            self.runs.call_off(run, why)

        try:
            yield
        except BaseException:
            shown = _CallingOff(self.places.progress)
            for _ in on_each(waiting, call_off, self.at_once, lambda: False, shown):
                pass
            raise

    def _each(self, runs: Sequence[str], act: Callable[[str], Found], hint: str) -> dict[str, TableAnswer[Found]]:
        """Returns the answer for each run; `hint` says what becomes of those that a stop did not let go on."""
        answers = on_each(runs, act, self.at_once, self.places.interrupted, self.places.progress)
        return {run: _hinted(answer, hint) for run, answer in zip(runs, answers, strict=True)}


@dataclass(frozen=True, slots=True)
class _CallingOff:
    """The progress of plans that are called off: none of these tables is done."""

    shown: Progress

    def step(self, what: str, done: int, total: int | None = None) -> None:
        self.shown.step("plans called off", done, total)


def _hinted(answer: TableAnswer[Found], hint: str) -> TableAnswer[Found]:
    stop = answer.problem
    return replace(answer, problem=Interrupted(stop.message, hint)) if isinstance(stop, Interrupted) else answer


def _run_of(each: TableAnswer[Proposed[AnyPlan]], *, joins: bool, waits: bool = False) -> str | None:
    value = each.value
    return value.run if value is not None and (value.joins, value.waits) == (joins, waits) else None


def _plan_of(each: TableAnswer[Proposed[AnyPlan]]) -> TableAnswer[AnyPlan]:
    return TableAnswer(each.table, None if each.value is None else each.value.plan, each.problem, each.of_catalog)


def _carried(
    each: TableAnswer[Proposed[AnyPlan]], ended: dict[str, TableAnswer[RunStatus]]
) -> TableAnswer[Carried[AnyPlan]]:
    if each.value is None:
        return TableAnswer(each.table, problem=each.problem, of_catalog=each.of_catalog)
    plan, unsearched = each.value.plan, each.value.unsearched
    end = None if each.value.run is None else ended[each.value.run]
    if end is None:
        return TableAnswer(each.table, Carried(plan, unsearched=unsearched), each.value.refusal)
    return TableAnswer(each.table, Carried(plan, end.value, unsearched), end.problem)
