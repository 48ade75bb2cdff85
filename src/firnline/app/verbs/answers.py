"""What verbs return that is more than one value: each still is what it was, and a notebook shows it as a page."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from firnline.errors import UnreadableMetadata
from firnline.foreign import harmless
from firnline.ops.runs.status import RunStatus
from firnline.policy.parse import Section
from firnline.ports.catalogs import TableName

if TYPE_CHECKING:  # only a notebook asks for pages
    from firnline.model.holds import Hold
    from firnline.ops.history.timeline import Timeline
    from firnline.ops.marks.adopt import Adoption
    from firnline.ops.marks.tags import Tagged
    from firnline.plans.in_force import PolicyInForce
    from firnline.plans.orphans import OrphanPlan
    from firnline.plans.pages import Page
    from firnline.policy.inherit import Effective
    from firnline.ports.formats import State


class TableNames(list[TableName]):
    """Names of tables: a list, that every verb takes one by one."""

    def to_json(self) -> dict[str, Any]:
        return {"tables": [str(each) for each in self]}

    def _repr_html_(self) -> str:
        from firnline.ops.html.tables import tables_html

        return tables_html(self)


class TableTags(list["Tagged"]):
    """The tags of a table: a list."""

    def to_json(self) -> dict[str, Any]:
        return {"tags": [each.to_json() for each in self]}

    def _repr_html_(self) -> str:
        from firnline.ops.html.tags import tags_html

        return tags_html(self)


class TableHolds(tuple["Hold", ...]):
    """The holds on a table: a tuple."""

    __slots__ = ()

    def page(self) -> Page:
        from firnline.ops.marks.pages import holds_page

        return holds_page(self)

    def to_json(self) -> dict[str, Any]:
        return {"holds": [each.to_json() for each in self]}

    def __str__(self) -> str:
        return self.page().to_text()

    def _repr_html_(self) -> str:
        from firnline.ops.html.marks import holds_html

        return holds_html(self)


class TableAdoption(tuple["Adoption", ...]):
    """What would be written into a table's own retention: a tuple."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        return {"wanted": [each.to_json() for each in self]}

    def __str__(self) -> str:
        from firnline.ops.marks.pages import adoption_page

        return adoption_page(self, "would write").to_text()

    def _repr_html_(self) -> str:
        from firnline.ops.html.marks import adoption_html

        return adoption_html(self)


class WrittenPolicy(Section):
    """A policy file as it is written: its outermost level."""

    __slots__ = ()

    @classmethod
    def of(cls, section: Section) -> WrittenPolicy:
        return cls(**{each.name: getattr(section, each.name) for each in fields(section)})

    def __str__(self) -> str:
        from firnline.plans.written_policy import written_page

        return written_page(self).to_text()

    def _repr_html_(self) -> str:
        from firnline.plans.html.markup import card
        from firnline.plans.written_policy import written_page

        return card("policy", written_page(self).to_html())


class TablePolicy(NamedTuple):
    """A table as it was read, and the policy in force on it."""

    state: State
    effective: Effective

    @property
    def in_force(self) -> PolicyInForce:
        from firnline.plans.in_force import PolicyInForce

        words = self.effective.policy.describe(self.state.native)
        return PolicyInForce(self.state.table, words, self.effective)

    def to_json(self) -> dict[str, Any]:
        return self.in_force.to_json()

    def __str__(self) -> str:
        return self.in_force.page().to_text()

    def _repr_html_(self) -> str:
        from firnline.plans.html.markup import card

        return card(self.state.table, self.in_force.page().to_html())


class TableRuns(list[RunStatus]):
    """Runs: a list, in the order of planning."""

    def to_json(self) -> dict[str, Any]:
        return {"runs": [each.to_json() for each in self]}

    def __str__(self) -> str:
        from firnline.ops.runs.pages.blocks import runs_page

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
