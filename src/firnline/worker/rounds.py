"""One round: what was begun goes on, tables that are due are searched, planned and expired, each by one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from firnline.app.lake_wide.runs import Carried
from firnline.app.many import answer_of
from firnline.errors import FirnlineError, Interrupted, LeaseHeld
from firnline.journal.events import OPEN, RunState
from firnline.lake import Lake
from firnline.ops.runs.status import RunStatus
from firnline.plans.answers import TableAnswer
from firnline.plans.plan import Plan
from firnline.policy.worker.keys import WorkerPolicy
from firnline.ports.catalogs import TableName
from firnline.worker.memory import Memory
from firnline.worker.report import RoundReport, RoundStep, next_run_ms
from firnline.worker.schedule import (
    begun,
    by_need,
    failed,
    is_due,
    is_search_due,
    looked,
    next_due_ms,
    search_failed,
    searched,
    taken,
)

CONFIG, RESUME, EXPIRE, ORPHANS, POINTERS, CACHE = "config", "resume", "expire", "orphans", "pointers", "cache"
_AT_A_TIME = 128
"""Tables that are planned together, then carried out: where a window closes, the first of a large lake are done."""
_LEAST_PAUSE_MS = 1_000
"""Between two rounds: whatever is due and cannot be done would else keep a core busy."""


@dataclass
class Round:
    """Works through a lake once. Whatever ends it, the next one finds by the records what is left to do."""

    lake: Lake
    policy: WorkerPolicy
    memory: Memory
    clock: Callable[[], int]
    may_go_on: Callable[[], bool]
    steps: list[RoundStep] = field(default_factory=list)
    looked: int = 0
    listed: set[str] = field(default_factory=set)
    _named: list[TableName] | None = field(default=None, init=False)
    _misses: bool = field(default=False, init=False)

    def work(self) -> RoundReport:
        """Returns what was done. Raises nothing for a table or a catalog: each answers for itself."""
        began = self.clock()
        order = self._order()
        for name in order:
            if not self.may_go_on():
                break
            whole = answer_of(name, lambda each: order[each](), lambda: False)
            if whole.problem is not None:
                self.steps.append(RoundStep(name, "the lake", problem=whole.problem))
        self.memory.save()
        now = self.clock()
        due = next_due_ms(self.memory, self.policy, now, self.listed - self._waiting)
        first = min(due, next_run_ms(self.steps, now) or due)
        stopped = not self.may_go_on() or any(isinstance(each.problem, Interrupted) for each in self.steps)
        return RoundReport(began, now, tuple(self.steps), self.looked, max(now + _LEAST_PAUSE_MS, first), stopped)

    def _order(self) -> dict[str, Callable[[], None]]:
        return {
            CONFIG: self._check_names,
            RESUME: self._resume,
            EXPIRE: self._expire,
            POINTERS: self._publish,
            CACHE: self._trim,
        }

    @property
    def _waiting(self) -> set[str]:
        """The tables with a plan that waits, for a person or for its time to undo: they get no second one beside it.
        One that was only saved to be looked at, or that a stop left before it was meant, holds nothing up.
        """
        runs = ((step.table, step.status.run) for step in self.steps if step.status is not None)
        return {table for table, run in runs if run.state in OPEN and run.is_meant}

    # ---- the steps

    def _check_names(self) -> None:
        """A rule under a name that nothing has protects nothing: that is told, and the tables that there are go on."""
        self.lake.places.catalogs.refuse_unknown_names(self.lake.places.config)

    def _resume(self) -> None:
        """What any worker or command left goes on: commits that were approved, purges that are due."""
        named = [str(each) for each in self._tables(RESUME)] if self.policy.tables else None
        for answer in self.lake.several(named, at_once=self.policy.at_once).resume():
            for status in answer.value or ():
                self.steps.append(RoundStep(RESUME, answer.table, status, status.refusal))
            if answer.problem is not None and not isinstance(answer.problem, LeaseHeld):
                # What is wrong with one run delays no new one: the table itself may be well.
                self.steps.append(RoundStep(RESUME, answer.table, problem=answer.problem))

    def _expire(self) -> None:
        """All that is due is planned together and carried out: what no table needs goes with what expires, where the
        table's folders are to be searched.
        """
        now, told = self.clock(), len(self.steps)
        self.listed = {str(each) for each in self._tables(EXPIRE)}
        if len(self.steps) == told and not self._misses:  # tables of a catalog that cannot be read now are still known
            self.memory.forget_others(self.listed)
        tables = self.listed - self._waiting
        to_search = {name for name in tables if is_search_due(self.memory.of(name), self.policy, now)}
        looked = {name for name in tables if is_due(self.memory.of(name), self.policy, now)}
        due = by_need(to_search | looked, self.memory, now)
        for start in range(0, len(due), _AT_A_TIME):
            some = due[start : start + _AT_A_TIME]
            self._expire_some([name for name in some if name in to_search], orphans=True)
            self._expire_some([name for name in some if name not in to_search], orphans=False)

    def _expire_some(self, names: list[str], *, orphans: bool) -> None:
        if not names or not self.may_go_on():
            return
        now = self.clock()
        self.memory.tables |= {name: begun(self.memory.of(name), now) for name in names}
        several = self.lake.several(names, at_once=self.policy.at_once)
        for answer in several.expire(meant=True, orphans=orphans):
            self._note_expiry(answer, orphans)

    def _publish(self) -> None:
        """Pointers follow the tables of which a policy says so."""
        for synced in self.lake.pointers.sync():
            self.steps += [RoundStep(POINTERS, synced.table, problem=problem) for problem in synced.problems]

    def _trim(self) -> None:
        self.lake.places.memory.prune()

    # ---- what is noted

    def _tables(self, step: str) -> list[TableName]:
        """Returns the tables to be kept in policy. Told are catalogs that cannot be read, and names of nothing; those
        that the file names are looked for once a round.
        """
        catalogs, tiers = self.lake.places.catalogs, self.lake.places.config.tiers
        if self._named is not None:
            return self._named
        chosen = catalogs.chosen(self.policy.tables or None)
        self._note_unread(step, chosen.unread)
        if not self.policy.tables:
            return [each for each in chosen.tables if each.catalog not in tiers]
        self.steps += [RoundStep(step, text, problem=problem) for text, problem in chosen.missing.items()]
        self._misses |= bool(chosen.missing or chosen.unread)
        self._named = chosen.tables
        return self._named

    def _note_expiry(self, answer: TableAnswer[Carried[Plan]], orphans: bool) -> None:
        name, carried, now = answer.table, answer.value, self.clock()
        if answer.problem is not None or carried is None:
            self._note_problem(EXPIRE, name, answer.problem, carried.status if carried else None)
            if carried is not None and carried.plan.orphans is not None:
                self._note_search(name, None)
            return
        self.looked += 1
        plan = carried.plan
        self.memory.tables[name] = looked(
            self.memory.of(name), self.policy, now, plan.victims.all.bytes, len(plan.expire)
        )
        if orphans and not _is_called_off(carried):
            self._note_search(name, carried.unsearched)
        if carried.status is not None:
            self.steps.append(RoundStep(EXPIRE, name, carried.status))

    def _note_search(self, name: str, problem: FirnlineError | None) -> None:
        known, now = self.memory.of(name), self.clock()
        if problem is None:
            self.memory.tables[name] = searched(known, now)
            return
        self.steps.append(RoundStep(ORPHANS, name, problem=problem))
        self.memory.tables[name] = search_failed(known, self.policy, now)

    def _note_unread(self, step: str, unread: Mapping[str, FirnlineError]) -> None:
        for name, problem in unread.items():
            self._note_problem(step, name, problem)

    def _note_problem(
        self, step: str, name: str, problem: FirnlineError | None, status: RunStatus | None = None
    ) -> None:
        """Backs off from a table that failed. One that another worker has is no failure, and a stop neither."""
        if isinstance(problem, LeaseHeld):
            self.memory.tables[name] = taken(self.memory.of(name), self.policy, self.clock())
            return
        self.steps.append(RoundStep(step, name, status, problem))
        if not isinstance(problem, Interrupted):
            self.memory.tables[name] = failed(self.memory.of(name), self.clock())


def _is_called_off(carried: Carried[Plan]) -> bool:
    """Tells whether the run came to nothing, as another had expired the same: what it was to take is still there."""
    return carried.status is not None and carried.status.state is RunState.CANCELLED
