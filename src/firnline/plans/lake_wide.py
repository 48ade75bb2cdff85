"""Plans of many tables as one page: the worst first, sums below; and the same as facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from firnline.model.files import Tally
from firnline.plans.answers import TableAnswer, counts_of, facts_of, what_failed
from firnline.plans.metadata_versions import MetadataVersions
from firnline.plans.pages import Block, Grid, Hint, Line, Page, counted, number, shortened, size
from firnline.plans.plan import Plan, tally_json

_HEADINGS = ("table", "snapshots", "would expire", "files", "bytes", "")
MOST_IDLE = 10
"""Tables of which nothing goes that have a line each; if there are more, they share one, unless all are asked for."""


TablePlan = TableAnswer[Plan]


def refusal_in(answer: TablePlan) -> str | None:
    """Returns why nothing of this table would go; None if all of its plan would."""
    problem = answer.problem or (None if answer.value is None else answer.value.refusal)
    return None if problem is None else problem.message


def victims_in(answer: TablePlan) -> Tally:
    return Tally() if answer.value is None else answer.value.victims.all


def sums_of(plans: Sequence[TablePlan]) -> Mapping[str, Any]:
    """Returns what the tables come to together. What a run would refuse is not counted as freed."""
    planned = [each for each in plans if each.value is not None]
    free = [victims_in(each) for each in planned if refusal_in(each) is None]
    known = [each.value for each in plans if each.value is not None]
    return {
        **counts_of(plans),
        "refused": sum(refusal_in(each) is not None for each in planned),
        "snapshots": sum(len(each.value.keep) + len(each.value.expire) for each in planned if each.value),
        "expire": sum(len(each.value.expire) for each in planned if each.value and refusal_in(each) is None),
        "victims": tally_json(sum(free, Tally())),
        **sums_of_sizes([(each.live, each.metadata_versions) for each in known]),
    }


def sums_of_sizes(found: Sequence[tuple[Tally | None, MetadataVersions | None]]) -> Mapping[str, Any]:
    """Returns how large the tables are, as far as their metadata tells, and how much that metadata is itself."""
    live = [size for size, _ in found if size is not None]
    versions = versions_together(each for _, each in found)
    return {
        "live": {**tally_json(sum(live, Tally())), "unknown": len(found) - len(live)},
        "metadata_versions": {
            "versions": versions.versions,
            "bytes": None if versions.versions and versions.unsized == versions.versions else versions.bytes,
            "unsized": versions.unsized,
        },
    }


def versions_together(found: Iterable[MetadataVersions | None]) -> MetadataVersions:
    """Returns the versions of several tables' metadata as one."""
    of = [each for each in found if each is not None]
    return MetadataVersions(
        sum(each.versions for each in of),
        sum(each.bytes for each in of),
        sum(each.unsized for each in of),
        cleared=bool(of) and all(each.cleared for each in of),
    )


def lake_wide_json(plans: Sequence[TablePlan]) -> dict[str, Any]:
    return {"tables": [facts_of(each) for each in _worst_first(plans)], "sums": dict(sums_of(plans))}


def lake_wide_page(plans: Sequence[TablePlan], everything: bool = False) -> Page:
    return Page(tuple(_blocks(plans, everything)))


def _blocks(plans: Sequence[TablePlan], everything: bool) -> Iterator[Block]:
    sums = sums_of(plans)
    rows, idle = _rows(_worst_first(plans), everything)
    last = (
        counted(sums["tables"], "table"), number(sums["snapshots"]), number(sums["expire"]),
        number(sums["victims"]["files"]), size(sums["victims"]["bytes"]), "",
    )  # fmt: skip
    yield Grid((*rows, last), _HEADINGS, right=frozenset({1, 2, 3, 4}))
    yield from what_failed("not planned: {}", sums["failed"], sums["unread_catalogs"])
    if sums["refused"]:
        yield Line(
            f"a run would refuse: {counted(sums['refused'], 'table')}; what they would expire is not counted above"
        )
    versions = versions_together(each.value.metadata_versions for each in plans if each.value is not None)
    if versions.unsized < versions.versions:
        yield Line(f"metadata: {versions.in_words()}")
    if waiting := sum(bool(each.value.waiting) for each in plans if each.value is not None):
        yield Line(f"runs wait for {counted(waiting, 'table')}")
        yield Hint("`firnline runs` shows the runs that wait, and until when")
    yield Line("nothing was changed")
    yield Hint("`firnline plan TABLE` shows one of them: its snapshots, and all of a reason that is cut here")
    if idle:
        yield Hint("`--list` gives those of which nothing would go a line each, too")


def _worst_first(plans: Sequence[TablePlan]) -> list[TablePlan]:
    """Returns those that need a person first, unreadable ones before refused ones; then those that free the most."""

    def place(each: TablePlan) -> tuple[Any, ...]:
        freed = victims_in(each)
        return each.value is not None, refusal_in(each) is None, -freed.bytes, -freed.files, each.table

    return sorted(plans, key=place)


def _rows(plans: Sequence[TablePlan], everything: bool) -> tuple[list[tuple[str, ...]], int]:
    """Returns the lines of tables, and how many tables share the last of them."""
    idle = [each for each in plans if _is_idle(each)]
    if everything or len(idle) <= MOST_IDLE:
        return [_row(each) for each in plans], 0
    snapshots = sum(_snapshots(each) for each in idle)
    shared = (more_tables(idle), number(snapshots), "0", "0", size(0), "")
    return [*(_row(each) for each in plans if not _is_idle(each)), shared], len(idle)


def more_tables(those: Sequence[object]) -> str:
    """Returns what stands for tables that share a line."""
    return f"and {number(len(those))} tables more"


def _is_idle(each: TablePlan) -> bool:
    """Tells whether nothing of the table would go, and nothing about it is worth a line of its own."""
    plan = each.value
    return plan is not None and refusal_in(each) is None and not plan.stages and not victims_in(each).files


def _snapshots(each: TablePlan) -> int:
    return 0 if each.value is None else len(each.value.keep) + len(each.value.expire)


def _row(each: TablePlan) -> tuple[str, ...]:
    reason = shortened(refusal_in(each) or "")
    if each.value is None:
        return (each.table, "", "", "", "", reason)
    victims = victims_in(each)
    figures = (number(_snapshots(each)), number(len(each.value.expire)), number(victims.files), size(victims.bytes))
    return (each.table, *figures, reason)
