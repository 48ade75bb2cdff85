"""One table: its graph before and after, its plan, policy, holds, tiers, runs and history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from firnline.model.files import Tally
from firnline.model.holds import Hold
from firnline.model.times import tell_due, tell_second
from firnline.ops.history.timeline import ON_A_PAGE, svg_of, timeline_page
from firnline.ops.html.runs import run_figures
from firnline.ops.runs.status import RunStatus
from firnline.ops.tiers.whereabouts import tiers_page
from firnline.plans.explain import explain
from firnline.plans.graph.facts import SnapshotGraph
from firnline.plans.html.charts import DOUBT, GOES, STAYS, Share, share_bar
from firnline.plans.html.graph import LinkOf, before_and_after
from firnline.plans.html.markup import Markup, element, joined, paragraph
from firnline.plans.pages import number, size, tally
from firnline.plans.plan import Plan
from firnline.web.facts.tables import TableReport
from firnline.web.html.document import figure_list, rows_of, section, self_contained

AddressOf = Callable[[str], str]
_NO_FORMS = Markup("")


@dataclass(frozen=True, slots=True)
class TableLinks:
    """Where a page leads to; a report leads nowhere. `forms` are what can be done, by the section that shows them."""

    snapshot: LinkOf | None = None
    run: AddressOf | None = None
    release: Callable[[Hold], str] | None = None
    hold_form: str = _NO_FORMS
    plan_form: str = _NO_FORMS
    tiers: str = _NO_FORMS


def table_document(report: TableReport) -> Markup:
    """Returns the report of a table in one file."""
    return self_contained(
        f"{report.table}: report",
        paragraph(f"as of {tell_second(report.made_ms)}"),
        table_sections(report, TableLinks()),
    )


def table_sections(report: TableReport, links: TableLinks) -> Markup:
    """Returns all that there is to see of a table; the figures are those of its JSON."""
    return joined([*_sections(report, links)])


def _sections(report: TableReport, links: TableLinks) -> Iterator[Markup]:
    graph = report.graph
    drawn = _missing(report, "graph") if graph is None else before_and_after(graph, links.snapshot)
    yield Markup("") if graph is None else _size(graph)
    yield section("Snapshots before and after", drawn, id_="graph")
    plan = "" if report.plan is None else plan_body(report.plan)
    yield section("Plan", plan, _missing(report, "plan"), links.plan_form, id_="plan")
    policy = "" if report.policy is None else report.policy.page().to_html()
    yield section("Policy", policy, _missing(report, "policy"), id_="policy")
    yield section("Holds", _holds(report, links), links.hold_form, id_="holds")
    tiers = "" if report.tiers is None else tiers_page(report.tiers, False).to_html()
    yield section("Tiers", tiers, _missing(report, "tiers"), links.tiers, id_="tiers")
    runs = "" if report.runs is None else runs_table(report.runs, links.run)
    yield section("Runs", runs, _missing(report, "runs"), id_="runs")
    yield section("History", _history(report), _missing(report, "history"), id_="history")


def _size(graph: SnapshotGraph) -> Markup:
    """Returns how large the table is, as far as its metadata tells."""
    live = graph.live
    files, large = ("unknown", "unknown") if live is None else (number(live.files), size(live.bytes))
    return figure_list(live_files=files, live_bytes=large, snapshots=number(len(graph.before)))


def _missing(report: TableReport, part: str) -> Markup:
    problem = report.problems.get(part)
    if problem is None:
        return Markup("")
    hint = f" ({problem.hint})" if problem.hint else ""
    return element("p", f"cannot be shown: {problem.message}{hint}", class_="bad")


def plan_body(plan: Plan) -> Markup:
    """Returns a plan: its figures, the shares of the table's bytes, and its page."""
    freed = plan.victims.all
    shares = [] if plan.kept is None else [Share("remaining", plan.kept.all.bytes, tally(plan.kept.all), STAYS)]
    spared = sum(plan.spared.values(), Tally())
    shares += [
        Share("would free", freed.bytes, tally(freed), GOES),
        Share("spared", spared.bytes, tally(spared), DOUBT),
    ]
    return joined(
        [
            figure_list(
                keep=number(len(plan.keep)),
                expire=number(len(plan.expire)),
                files_to_free=number(freed.files),
                bytes_to_free=size(freed.bytes),
            ),
            element("div", share_bar("bytes of the table", shares), class_="chart"),
            element("details", element("summary", "the plan in words"), explain(plan).to_html()),
        ]
    )


def _holds(report: TableReport, links: TableLinks) -> Markup:
    if report.holds is None:
        return _missing(report, "holds")
    if not report.holds:
        return paragraph("no holds")
    headings = ("hold", "on", "by", "why", "until", *(("",) if links.release else ()))
    return rows_of(headings, (_hold(each, links) for each in report.holds))


def _hold(hold: Hold, links: TableLinks) -> tuple[str, ...]:
    until = "it is released" if hold.until_ms is None else tell_due(hold.until_ms)
    said = (hold.name, hold.snapshot or "whole table", hold.who, hold.damage or hold.why, until)
    return said if links.release is None else (*said, links.release(hold))


def runs_table(runs: list[RunStatus], address: AddressOf | None) -> Markup:
    """Returns runs, the newest first."""
    if not runs:
        return paragraph("no runs")
    headings = ("run", "state", "planned", "snapshots", "files", "bytes", "grace ends", "outcomes")
    return rows_of(headings, (_run(each, address) for each in reversed(runs)), (3, 4, 5))


def _run(status: RunStatus, address: AddressOf | None) -> tuple[str, ...]:
    name = status.id if address is None else element("a", status.id, href=address(status.id))
    waits = f", waits: {status.waits_told}" if status.waits else ""
    return (name, status.state.value + waits, *run_figures(status))


def _history(report: TableReport) -> Markup:
    if report.history is None:
        return Markup("")
    timeline, trouble = report.history
    drawn = (
        element("div", Markup(svg_of(timeline, ON_A_PAGE)), class_="scroll", tabindex="0") if timeline.by_day else ""
    )
    said = "" if trouble is None else paragraph(f"not all could be read: {trouble.message}")
    days = element("details", element("summary", "day by day"), timeline_page(timeline).to_html())
    figures = figure_list(live_snapshots=number(timeline.live), expired_snapshots=number(timeline.expired))
    return joined([figures, said, drawn, days])
