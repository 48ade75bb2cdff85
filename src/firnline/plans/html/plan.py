"""A plan in a notebook: what stays and what goes at a glance, then its page."""

from __future__ import annotations

from collections.abc import Iterator

from firnline.model.files import Tally
from firnline.plans.explain import explain
from firnline.plans.graph.facts import SnapshotGraph
from firnline.plans.html.charts import DOUBT, GOES, OTHER, STAYS, Share, TimedMark, share_bar, time_columns
from firnline.plans.html.graph import before_and_after
from firnline.plans.html.markup import Markup, card, figures
from firnline.plans.pages import number, size, tally
from firnline.plans.plan import Plan


def plan_html(plan: Plan, graph: SnapshotGraph | None = None) -> Markup:
    """Returns the plan for a notebook, with the graph of its snapshots; the figures are those of its JSON."""
    freed = plan.victims.all
    return card(
        f"{plan.table} ({plan.format})",
        figures(
            keep=number(len(plan.keep)),
            expire=number(len(plan.expire)),
            files_to_free=number(freed.files),
            bytes_to_free=size(freed.bytes),
        ),
        time_columns("snapshots", (("keep", STAYS), ("expire", GOES)), _snapshots(plan)),
        share_bar("bytes of the table", [*_shares(plan)]),
        "" if graph is None else before_and_after(graph),
        explain(plan).to_html(),
    )


def _snapshots(plan: Plan) -> Iterator[TimedMark]:
    yield from (TimedMark(each.timestamp_ms, 0) for each in plan.keep)
    yield from (TimedMark(each.timestamp_ms, 1) for each in plan.expire)


def _shares(plan: Plan) -> Iterator[Share]:
    if plan.kept is not None:
        yield _share("remaining", plan.kept.all, STAYS)
    yield _share("would free", plan.victims.all, GOES)
    yield _share("spared", sum(plan.spared.values(), Tally()), DOUBT)
    if plan.metadata_versions is not None:
        yield Share("metadata", plan.metadata_versions.bytes, plan.metadata_versions.in_words(), OTHER)


def _share(name: str, what: Tally, colour: str) -> Share:
    return Share(name, what.bytes, tally(what), colour)
