"""What verbs return that is more than one value: each still is what it was, and a notebook shows it as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from firnline.errors import UnreadableMetadata
from firnline.foreign import harmless
from firnline.ops.runs.status import RunStatus
from firnline.ports.catalogs import TableName

if TYPE_CHECKING:  # only a notebook asks for pages
    from firnline.ops.history.timeline import Timeline
    from firnline.plans.orphans import OrphanPlan


class TableNames(list[TableName]):
    """Names of tables: a list, that every verb takes one by one."""

    def to_json(self) -> dict[str, Any]:
        return {"tables": [str(each) for each in self]}

    def _repr_html_(self) -> str:
        from firnline.ops.html.tables import tables_html

        return tables_html(self)


class TableRuns(list[RunStatus]):
    """Runs: a list, in the order of planning."""

    def to_json(self) -> dict[str, Any]:
        return {"runs": [each.to_json() for each in self]}

    def __str__(self) -> str:
        from firnline.ops.runs.pages import runs_page

        return runs_page(self).to_text()

    def _repr_html_(self) -> str:
        from firnline.ops.html.runs import runs_html

        return runs_html(self)


class TableHistory(NamedTuple):
    """A table's days, and what of its history could not be read; None if all could."""

    timeline: Timeline
    trouble: UnreadableMetadata | None

    def to_json(self) -> dict[str, Any]:
        return self.timeline.to_json()

    def __str__(self) -> str:
        said = str(self.timeline)
        return said if self.trouble is None else f"{said}\nerror: {harmless(self.trouble.message)}"

    def _repr_html_(self) -> str:
        from firnline.ops.html.history import history_html

        return history_html(self.timeline, None if self.trouble is None else self.trouble.message)


class OrphanAnswer(NamedTuple):
    """What no table needs, and the run that removes it; None where there is nothing to remove, or none was wanted."""

    plan: OrphanPlan
    run: RunStatus | None

    def to_json(self) -> dict[str, Any]:
        carried = {"run": None, "state": None} if self.run is None else self.run.to_json()
        return {**carried, **self.plan.to_json()} if self.run is None else {**self.plan.to_json(), **carried}

    def __str__(self) -> str:
        from firnline.ops.orphans.pages import search_page

        return search_page(self.plan, self.run).to_text()

    def _repr_html_(self) -> str:
        from firnline.ops.html.runs import run_html
        from firnline.plans.html.orphans import orphans_html

        return orphans_html(self.plan, *(() if self.run is None else (run_html(self.run),)))
