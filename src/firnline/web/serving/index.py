"""What is known of every table of the lake: looked at in the background, one lake-wide plan at a time, never at a
request.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from firnline.errors import FirnlineError
from firnline.model.locations import identity
from firnline.policy.worker.keys import worker_policy
from firnline.web.facts.costs import TierCost, holdings_of, tier_costs
from firnline.web.facts.lake import TableRow, row_of, sums_of_rows
from firnline.web.facts.savings import Savings, savings_of
from firnline.worker.memory import Memory, usual_memory
from firnline.worker.schedule import due_ms

if TYPE_CHECKING:
    from firnline.lake import Lake
    from firnline.ops.runs.status import RunStatus
    from firnline.ops.tiers.whereabouts import Holding

OpenLake = Callable[[], "Lake"]
_LIST_AGAIN_S = 10.0


@dataclass
class LakeIndex:
    """The tables by name, each as it was last planned; and the runs. `looked_ms` is when all were last looked at, None
    before the first time. What could not be read stays as it was last known, and `trouble` says so: `unread` are the
    catalogs, `failed` the rest.
    """

    open_lake: OpenLake
    config: str | None = None
    every_s: float = 600.0
    names: frozenset[str] = frozenset()
    rows: dict[str, TableRow] = field(default_factory=dict)
    runs: dict[str, list[RunStatus]] = field(default_factory=dict)
    holdings: dict[str, tuple[str, tuple[Holding, ...]]] = field(default_factory=dict)
    """What tiers hold of each table, and the version of the table of which that was counted."""
    looked_ms: int | None = None
    unread: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    listed_s: float = 0.0
    changes: int = 0
    _summed: tuple[tuple[int, int, int], dict[str, Any]] | None = None
    _stop: Event = field(default_factory=Event)
    _ask: Event = field(default_factory=Event)

    def start(self) -> None:
        Thread(target=self._work, name="firnline-index", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()
        self._ask.set()

    def ask(self) -> None:
        """Has all tables looked at again soon."""
        self._ask.set()

    def has(self, table: str) -> bool:
        """Tells whether a configured catalog lists a table; one that was just made is found after some seconds."""
        if table not in self.names and time.monotonic() - self.listed_s > _LIST_AGAIN_S:
            self.list_names()
        return table in self.names

    def list_names(self) -> None:
        """Reads which tables there are, without looking at any. Those of a catalog that cannot be read are as before:
        an outage takes no table away.
        """
        self.listed_s = time.monotonic()
        found, unread = self.open_lake().places.catalogs.readable()
        of_unread = tuple(f"{name}." for name in unread)
        self.names = frozenset([*map(str, found), *(name for name in self.names if name.startswith(of_unread))])
        self.unread = {name: problem.message for name, problem in unread.items()}

    def look(self) -> None:
        """Looks at every table once. Each is shown as soon as it is known."""
        lake = self.open_lake()
        self.list_names()
        answered = set()
        fences: dict[str, str] = {}
        memory, policy = Memory.load(usual_memory(self.config)), worker_policy(lake.places.config.worker)
        for answer in lake.several().plan():
            if self._stop.is_set():
                return
            now_ms, known = lake.places.clock(), memory.tables.get(answer.table)
            due = None if known is None else max(now_ms, due_ms(known, policy, now_ms))
            self.rows[answer.table] = row_of(answer, now_ms, due)
            answered.add(answer.table)
            fences |= {} if answer.value is None else {answer.table: answer.value.fence}
            self.changes += 1
        self._look_at_runs(lake)
        self.rows = {name: row for name, row in self.rows.items() if name in self.names or name in answered}
        self.looked_ms = lake.places.clock()
        if lake.places.config.tiers:
            self._look_at_tiers(lake, fences)

    def _look_at_tiers(self, lake: Lake, fences: Mapping[str, str]) -> None:
        """Counts what tiers hold of each table that is another than when it was last counted: a run that hands
        something over changes the table too. What cannot be counted stays as it was last known.
        """
        self.holdings = {name: each for name, each in self.holdings.items() if name in self.names}
        for table, fence in fences.items():
            if self._stop.is_set():
                return
            if self.holdings.get(table, ("", ()))[0] != fence:
                try:
                    self.holdings[table] = (fence, holdings_of(lake, table))
                except FirnlineError as problem:
                    self.failed.append(f"tiers of {table}: {problem.message}")

    @property
    def costs(self) -> list[TierCost]:
        """What each tier holds of all tables together."""
        return tier_costs(each for _, each in list(self.holdings.values()))

    def _look_at_runs(self, lake: Lake) -> None:
        """Reads the runs of every table. Those that cannot be read stay as they were: they did not delete less."""
        found, failed = {}, []
        for each in lake.several().runs(everywhere=True):
            if each.problem is None:
                found[each.table] = list(each.value or ())
            elif each.table not in self.unread:
                failed.append(f"runs of {each.table}: {each.problem.message}")
        known = {name: runs for name, runs in self.runs.items() if name in self.names}
        self.runs, self.failed = {**known, **found}, failed

    @property
    def trouble(self) -> list[str]:
        """What could not be read, each as a sentence."""
        return [*(f"{name}: {said}" for name, said in self.unread.items()), *self.failed]

    @property
    def sums(self) -> dict[str, Any]:
        """What the tables come to together; added up again once a row is another."""
        mark = (id(self.rows), len(self.rows), self.changes)
        if self._summed is None or self._summed[0] != mark:
            self._summed = (mark, sums_of_rows(list(self.rows.values())))
        return self._summed[1]

    @property
    def savings(self) -> Savings:
        return savings_of(run for runs in list(self.runs.values()) for run in runs)

    def table_of(self, path: str) -> str | None:
        """Returns the table in whose folder a path lies, as far as tables are known; the innermost of several."""
        inside = [row for row in list(self.rows.values()) if row.location and _lies_in(path, row.location)]
        return max(inside, key=lambda row: len(row.location)).table if inside else None

    def _work(self) -> None:
        while not self._stop.is_set():
            self._ask.clear()
            try:
                self.look()
            except FirnlineError as problem:
                self.failed = [problem.message]
            except Exception:
                logging.getLogger("firnline").exception("the lake could not be looked at")
                self.failed = ["an error of firnline's own: see its log"]
            self._ask.wait(self.every_s)


def _lies_in(path: str, folder: str) -> bool:
    return identity(path).startswith(f"{identity(folder).rstrip('/')}/")
