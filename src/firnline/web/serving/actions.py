"""What can be done from the page: the verbs that the commands call, each written down first with who and when."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import TYPE_CHECKING

from firnline.errors import FirnlineError, LeaseHeld, UsageError
from firnline.journal.events import RunState
from firnline.journal.layout import RunId
from firnline.patience import Patience
from firnline.ports.observing.news import News
from firnline.ports.progress import PURGING_FILES

if TYPE_CHECKING:
    from firnline.lake import Lake
    from firnline.model.holds import Hold
    from firnline.ops.runs.status import RunStatus

_KIND = "page"
_OTHERS = Patience(attempts=1_000, base_delay_s=0.2, max_delay_s=5.0, budget_s=900.0)
"""How long a run that was approved waits for another process that has its table."""


@dataclass
class PageActions:
    """What persons do. `at_work` are the runs that this process takes further now, `purged` how many files of each met
    their end: a run's record has that only after thousands. `troubles` says of a run why the last try went no
    further. `changed` is told the table once such a run goes no further, whatever came of it.
    """

    open_lake: Callable[[], Lake]
    changed: Callable[[str], None]
    at_work: set[str] = field(default_factory=set)
    purged: dict[str, int] = field(default_factory=dict)
    troubles: dict[str, FirnlineError] = field(default_factory=dict)
    others: Patience = _OTHERS
    _approving: Lock = field(default_factory=Lock)

    def plan(self, table: str, who: str) -> str:
        """Returns the run in which the plan of a table was saved. Raises UsageError where nothing would go, and what
        a run would be refused with: no record is left then, for it could only wait for ever.
        """
        from firnline.app.runs import Runs

        lake = self._noted("plan", table, who)
        view = lake.plan(table)
        plan = Runs(lake.places).proposed(view.work, view.planned)
        if plan.refusal is not None:
            raise plan.refusal
        if plan.run is None:
            raise UsageError(f"nothing of {table} would go: there is nothing to approve")
        return plan.run

    def approve(self, run: str, who: str, note: str | None = None) -> RunStatus:
        """Returns the run, approved; it is taken as far as it may go now, behind the answer. Raises UsageError for one
        that has an approval: a second click, or a second person, would else be written down as who wanted it. Of two
        processes the record lets one write it.
        """
        from firnline.app.runs import refuse_approved

        with self._approving:  # two requests at once would both find none
            refuse_approved(self.open_lake().run(run).run)
            lake = self._noted("approve", _table_of(run), who, run)
            approved = lake.approve(run, by=who, note=note)
        self._carry_on(lake, approved.id)
        return approved

    def undo(self, run: str, who: str) -> RunStatus:
        return self._noted("undo", _table_of(run), who, run).undo(run)

    def hold(self, table: str, who: str, name: str, snapshot: str | None, why: str, until: str | None) -> Hold:
        """Returns the hold. Raises UsageError without a name."""
        if not name.strip():
            raise UsageError("the hold has no name", hint="a case, a ticket")
        lake = self._noted("hold", table, who, hold=name, why=why)
        return lake.hold(table, name.strip(), snapshot or None, why=why, who=who, until=until or None)[0]

    def release(self, table: str, who: str, name: str) -> None:
        self._noted("release", table, who, hold=name).release(table, name)

    def _noted(self, what: str, table: str, who: str, run: str = "", **words: str) -> Lake:
        """Writes into the audit log what a person is about to do. Raises AuditUnwritable where that cannot be."""
        lake = self.open_lake()
        said: Mapping[str, str] = {"by": who, **{name: each for name, each in words.items() if each}}
        news = News(run, table, _KIND, None, what, lake.places.clock(), words=said)
        lake.places.watch.attest(news)
        logging.getLogger("firnline").info("page: %s %s by %s", what, run or table, who)
        return lake

    def _carry_on(self, lake: Lake, run: str) -> None:
        """Takes a run further. One that is cut off by the end of this process is resumed from its record."""

        def work() -> None:
            try:
                self._advance(lake, run)
                self.troubles.pop(run, None)
            except FirnlineError as problem:
                self.troubles[run] = problem
            finally:
                self.at_work.discard(run)
                self.purged.pop(run, None)
                self.changed(_table_of(run))

        lake.places.progress = _Purged(run, self.purged)
        self.at_work.add(run)
        Thread(target=work, name="firnline-run", daemon=True).start()

    def _advance(self, lake: Lake, run: str) -> None:
        """Takes a run further once no other process has its table. One that had it while the run was approved may find
        the record another than it read, and stop: then nobody else would go on.
        """
        for pause in self.others.pauses():
            try:
                lake.advance(run)
            except LeaseHeld as held:
                self.troubles[run] = held
                time.sleep(pause)
            else:
                return
        lake.advance(run)


@dataclass(frozen=True, slots=True)
class _Purged:
    """Notes how far the purge of a run came."""

    run: str
    purged: dict[str, int]

    def step(self, what: str, done: int, total: int | None = None) -> None:
        if what == PURGING_FILES:
            self.purged[self.run] = done


def may_approve(status: RunStatus) -> bool:
    """Tells whether an approval would take a run further: nobody gave one, and its plan is not refused anyway."""
    plan = status.run.plan
    waits = status.state is RunState.PLANNED and status.run.approval is None
    return waits and not (plan.get("refused") or plan.get("conflict"))


def _table_of(run: str) -> str:
    return RunId.parse(run).table
