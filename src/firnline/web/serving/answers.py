"""What the page knows: read models, kept for a while, of tables that the configured catalogs have; of no others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from firnline.errors import NoSuchTable, UsageError
from firnline.journal.layout import RunId, is_stamp
from firnline.model.times import format_instant
from firnline.web.facts.lake import SORTS, LakeView
from firnline.web.facts.runs import RunReport, run_report
from firnline.web.facts.tables import TableReport, table_report
from firnline.web.serving.index import LakeIndex, OpenLake
from firnline.web.serving.shelf import Shelf
from firnline.web.serving.waits import Waits

if TYPE_CHECKING:
    from firnline.ops.looking.why import Explanation
    from firnline.ops.tiers.whereabouts import TableTiers
    from firnline.plans.plan import Plan

_WHOLE = ("/", "://")


@dataclass
class Answers:
    """Read models. Whatever a request names, nothing is opened that no configured catalog lists: a path of this
    machine is no table here.
    """

    open_lake: OpenLake
    index: LakeIndex
    waits: Waits = field(default_factory=Waits)
    tables: Shelf[TableReport] = field(default_factory=Shelf)
    plans: Shelf[Plan] = field(default_factory=lambda: Shelf(fresh_s=300.0))
    tiers: Shelf[TableTiers] = field(default_factory=lambda: Shelf(fresh_s=300.0))
    whys: Shelf[Explanation] = field(default_factory=Shelf)

    def __post_init__(self) -> None:
        for each in (self.tables, self.plans, self.tiers, self.whys):
            each.waits = self.waits

    def known(self, table: str) -> str:
        """Returns the name. Raises NoSuchTable for one that no catalog lists."""
        if not self.index.has(table):
            raise NoSuchTable("no configured catalog has a table of that name")
        return table

    def known_run(self, run: str) -> str:
        """Returns the run's whole name. Raises NoSuchTable for one of a table that no catalog lists."""
        parsed = RunId.parse(run)
        if not is_stamp(parsed.stamp):  # it becomes part of a path
            raise UsageError("this is no run", hint="a run is named TABLE@STAMP")
        self.known(parsed.table)
        return str(parsed)

    def lake(self, text: str, sort: str, page: int) -> tuple[LakeView, dict[str, Any]]:
        """Returns some of the tables, and the sums of all."""
        rows = list(self.index.rows.values())
        return LakeView(rows, text, sort if sort in SORTS else SORTS[0], max(1, page)), self.index.sums

    def table(self, name: str) -> tuple[TableReport, float]:
        """Returns all of a table that needs no look at files, and its age in seconds."""
        self.known(name)
        return self.tables.get(f"{name}\n", lambda: table_report(self.open_lake(), name, plan=False))

    def plan(self, name: str) -> tuple[Plan, float]:
        """Returns a table's plan, with its files, and its age in seconds."""
        self.known(name)

        def made() -> Plan:
            view = self.open_lake().plan(name)
            view.planned.close()
            return view.plan

        return self.plans.get(f"{name}\n", made)

    def tiers_of(self, name: str) -> tuple[TableTiers, float]:
        """Returns which tiers have each known snapshot of a table and what each tier holds, and the age of that in
        seconds.
        """
        self.known(name)
        return self.tiers.get(f"{name}\n", lambda: self.open_lake().tiers(name))

    def run(self, run: str) -> RunReport:
        """Returns a run as it stands now: its record is small, and it may move at any moment."""
        known = self.known_run(run)
        with self.waits.of(RunId.parse(known).table):
            return run_report(self.open_lake(), known)

    def why(self, table: str, what: str) -> tuple[Explanation, float]:
        """Returns why something is here, and the age of that in seconds. Raises UsageError for a file that is not named
        by its whole path: a relative one would be looked for on this machine.
        """
        if not table:
            found = self.index.table_of(what)
            if found is None:
                raise UsageError("no known table has its folder there", hint="name the table too")
            table = found
        self.known(table)
        return self.whys.get(f"{table}\n{what}", lambda: self._why(table, what))

    def _why(self, table: str, what: str) -> Explanation:
        lake = self.open_lake()
        if "/" in what and not (what.startswith(_WHOLE[0]) or _WHOLE[1] in what):
            state = lake.places.source(table).load()
            if what not in state.refs:
                raise UsageError("a file is named by its whole path here")
        return lake.why(table, what)

    def forget(self, table: str) -> None:
        """Drops what is kept of a table: something was done to it."""
        for kept in (self.tables, self.plans, self.tiers, self.whys):
            kept.forget(f"{table}\n")

    def changed(self, table: str) -> None:
        """Drops what is kept of a table, and has the lake looked at again soon."""
        self.forget(table)
        self.index.ask()

    def looked(self) -> str | None:
        return None if self.index.looked_ms is None else format_instant(self.index.looked_ms)
