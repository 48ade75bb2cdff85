"""The lake: its tables in brief, its runs, what was saved, and the search for why something is still here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from firnline.model.times import minute
from firnline.ops.html.why import why_html
from firnline.ops.looking.why import Explanation
from firnline.ops.runs.status import RunStatus
from firnline.ops.tiers.whereabouts import monthly
from firnline.plans.html.charts import GOES, count_bars
from firnline.plans.html.markup import Markup, element, joined, paragraph, table
from firnline.plans.pages import number, shortened, size
from firnline.web.facts.costs import TierCost
from firnline.web.facts.lake import SORTS, LakeView, TableRow
from firnline.web.facts.savings import Savings
from firnline.web.html.document import figure_list, rows_of, text_field
from firnline.web.html.shell import address, ask
from firnline.web.html.tables import runs_table

_HEADINGS = ("table", "format", "snapshots", "would expire", "live", "remaining", "garbage", "policy", "next look", "")


def lake_main(
    view: LakeView, sums: Mapping[str, Any], costs: Sequence[TierCost], trouble: Sequence[str], age: str
) -> Iterator[Markup]:
    """Yields the tables: their sums, a search, and one page of rows."""
    yield figure_list(
        tables=number(sums["tables"]),
        snapshots=number(sums["snapshots"]),
        would_expire=number(sums["expire"]),
        files_to_free=number(sums["victims"]["files"]),
        bytes_to_free=size(sums["victims"]["bytes"]),
        live_bytes=size(sums["live"]["bytes"]),
        metadata_versions=number(sums["metadata_versions"]["versions"]),
    )
    if sums["live"]["unknown"]:
        yield paragraph(f"tables whose metadata does not tell their size: {number(sums['live']['unknown'])}")
    if costs:
        yield paragraph(f"tables that have history in tiers: {'; '.join(map(_cost, costs))}")
    yield element("p", age, class_="faint")
    for each in trouble:
        yield element("p", f"not all could be read: {each}", class_="bad")
    if sums["failed"] or sums["refused"]:
        refused = f"a run would refuse: {number(sums['refused'])}; what they would expire is not counted above"
        yield paragraph(f"not planned: {number(sums['failed'])}; {refused}")
    yield ask("/", text_field("Name", "q", view.text, "search"), _sorts(view.sort), element("button", "show"))
    yield rows_of(_HEADINGS, map(_row, view.shown), (2, 3, 4, 5, 6)) if view.shown else paragraph("no tables")
    yield _pages(view)


def _cost(each: TierCost) -> str:
    return f"{each.tier} {size(each.size.bytes)} of {number(each.tables)}, {monthly(each.monthly)} a month"


def _sorts(chosen: str) -> Markup:
    options = (
        element("option", each, value=each, **({"selected": "selected"} if each == chosen else {})) for each in SORTS
    )
    return element("label", "Order by", element("select", *options, name="sort"))


def _row(each: TableRow) -> tuple[str, ...]:
    return (
        element("a", each.table, href=address("/table", name=each.table)),
        each.format,
        number(each.snapshots),
        number(each.expire),
        "" if each.error else "unknown" if each.live is None else size(each.live.bytes),
        "" if each.kept is None else size(each.kept.bytes),
        size(each.victims.bytes),
        each.policy,
        "no worker" if each.next_ms is None else minute(each.next_ms),
        element("span", shortened(each.error or each.refused or ""), class_="bad"),
    )


def _pages(view: LakeView) -> Markup:
    if view.pages == 1:
        return Markup("")
    links = []
    for page, said in ((view.page - 1, "previous"), (view.page + 1, "next")):
        if 1 <= page <= view.pages:
            links.append(element("a", said, href=address("/", q=view.text, sort=view.sort, page=page), rel="nofollow"))
    where = f"page {view.page} of {view.pages}, {number(len(view.found))} tables"
    return element("nav", where, *links, class_="pages", aria_label="pages of tables")


def runs_main(runs: Sequence[RunStatus], age: str) -> Iterator[Markup]:
    """Yields the runs of all tables."""
    yield element("p", age, class_="faint")
    ordered = sorted(runs, key=lambda each: each.run.events[0].at_ms)
    yield runs_table(ordered, lambda run: address("/run", id=run))


def savings_main(savings: Savings, age: str) -> Iterator[Markup]:
    """Yields what runs deleted, day by day."""
    yield figure_list(files_deleted=number(savings.all.files), bytes_deleted=size(savings.all.bytes))
    yield element("p", age, class_="faint")
    if not savings.days:
        yield paragraph("no run has deleted anything yet")
        return
    bars = {name: bar for name, _, bar in count_bars([(each.day, each.deleted.bytes) for each in savings.days], GOES)}
    rows = [
        (each.day, number(each.runs), number(each.deleted.files), size(each.deleted.bytes), bars[each.day])
        for each in savings.days
    ]
    yield table(("day", "runs", "files", "bytes", ""), rows, frozenset({1, 2, 3}))


def why_main(name: str, what: str, answer: Explanation | None, said: Sequence[str] = ()) -> Iterator[Markup]:
    """Yields the search, and its answer."""
    yield ask(
        "/why",
        text_field("File, by its whole path; or a snapshot or ref of the table", "what", what, required=True),
        text_field("Table; a file's own is found by its folder", "table", name),
        element("button", "ask"),
    )
    yield joined(said)
    if answer is not None:
        yield why_html(answer)
