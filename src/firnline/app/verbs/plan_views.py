"""A plan as a verb returns it: text, JSON, a page for a notebook, and the files behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firnline.plans.explain import explain

if TYPE_CHECKING:
    from firnline.ops.runs.plan import Planned
    from firnline.ops.table.context import TableContext
    from firnline.plans.graph.facts import SnapshotGraph
    from firnline.plans.plan import Plan


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan to look at: in a notebook as a page, in a program through `plan`, `to_json()`, `files()` and `graph`."""

    planned: Planned
    plan: Plan
    work: TableContext

    @property
    def graph(self) -> SnapshotGraph:
        """The snapshots of the table before and after; drawn anew each time, for a history may be long."""
        from firnline.ops.looking.graphs import graph_of

        assert self.planned.settled is not None
        return graph_of(self.work.source.format, self.planned.state, self.planned.settled, self.planned.plan)

    def to_json(self) -> dict[str, Any]:
        return self.plan.to_json()

    def files(self) -> Iterator[dict[str, Any]]:
        """Yields the files that would go, one by one: path, kind, size."""
        survey = self.planned.survey
        for batch in () if survey is None else survey.victim_batches():
            for row in batch.to_pylist():
                yield {"path": row["key"], "kind": row["kind"], "size": row["size"]}

    def write_files(self, out: str | Path) -> int:
        """Returns the number of files written to `out`, a .parquet or .csv."""
        from firnline.ops.looking.files import write_listing

        return write_listing(self.planned.survey, Path(out), self.planned.state.owned)

    def __str__(self) -> str:
        return explain(self.plan).to_text()

    def _repr_html_(self) -> str:
        from firnline.plans.html.plan import plan_html

        return plan_html(self.plan, self.graph)
