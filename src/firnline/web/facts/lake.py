"""The tables of a lake in brief: what a plan of each came to, kept from the last look at all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from firnline.model.files import Tally
from firnline.model.times import format_instant
from firnline.plans.lake_wide import refusal_in, sums_of_sizes, victims_in
from firnline.plans.plan import tally_json

if TYPE_CHECKING:
    from firnline.plans.lake_wide import TablePlan
    from firnline.plans.metadata_versions import MetadataVersions


@dataclass(frozen=True, slots=True)
class TableRow:
    """One table: the figures of its last plan. `live` is its size by its metadata alone, None where that does not tell.
    `kept` is None where nothing expires, since then nothing was walked;
    `error` says why it could not be planned, `refused` why a run would go no further. `next_ms` is when a worker looks
    at it again, None where none does; `of_catalog` marks a catalog that cannot be read.
    """

    table: str
    planned_ms: int
    format: str = ""
    location: str = ""
    policy: str = ""
    snapshots: int = 0
    expire: int = 0
    live: Tally | None = None
    versions: MetadataVersions | None = None
    kept: Tally | None = None
    victims: Tally = field(default_factory=Tally)
    refused: str | None = None
    error: str | None = None
    next_ms: int | None = None
    of_catalog: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "planned_at": format_instant(self.planned_ms),
            "format": self.format,
            "location": self.location,
            "policy": self.policy,
            "snapshots": self.snapshots,
            "expire": self.expire,
            "live": None if self.live is None else tally_json(self.live),
            "metadata_versions": None if self.versions is None else self.versions.to_json(),
            "kept": None if self.kept is None else tally_json(self.kept),
            "victims": tally_json(self.victims),
            "refused": self.refused,
            "error": self.error,
            "next_look": None if self.next_ms is None else format_instant(self.next_ms),
        }


def row_of(answer: TablePlan, now_ms: int, next_ms: int | None = None) -> TableRow:
    """Returns what a plan came to, without its lists: those of a thousand tables would not fit."""
    plan = answer.value
    if plan is None:
        return TableRow(answer.table, now_ms, error=refusal_in(answer), next_ms=next_ms, of_catalog=answer.of_catalog)
    return TableRow(
        answer.table,
        now_ms,
        plan.format,
        plan.location,
        plan.policy,
        len(plan.keep) + len(plan.expire),
        len(plan.expire),
        plan.live,
        plan.metadata_versions,
        None if plan.kept is None else plan.kept.all,
        victims_in(answer),
        refusal_in(answer),
        next_ms=next_ms,
    )


def sums_of_rows(rows: Iterable[TableRow]) -> dict[str, Any]:
    """Returns what the tables come to together, as `plan --all --json` sums them: what a run would refuse is not
    counted as freed.
    """
    found = list(rows)
    tables = [each for each in found if not each.of_catalog]
    planned = [each for each in found if each.error is None]
    free = [each for each in planned if each.refused is None]
    return {
        "tables": len(tables),
        "failed": len(tables) - len(planned),
        "unread_catalogs": len(found) - len(tables),
        "refused": len(planned) - len(free),
        "snapshots": sum(each.snapshots for each in planned),
        "expire": sum(each.expire for each in free),
        "victims": tally_json(sum((each.victims for each in free), Tally())),
        **sums_of_sizes([(each.live, each.versions) for each in planned]),
    }


SORTS = ("garbage", "name", "snapshots", "size")


@dataclass(frozen=True)
class LakeView:
    """Some of the tables of a lake: those whose names hold a text, in an order, and of these one page of many."""

    rows: Sequence[TableRow]
    text: str = ""
    sort: str = SORTS[0]
    page: int = 1
    per_page: int = 100

    @cached_property
    def found(self) -> list[TableRow]:
        wanted = self.text.casefold()
        return sorted((each for each in self.rows if wanted in each.table.casefold()), key=self._place)

    @property
    def shown(self) -> list[TableRow]:
        return self.found[(self.page - 1) * self.per_page : self.page * self.per_page]

    @property
    def pages(self) -> int:
        return max(1, -(-len(self.found) // self.per_page))

    def _place(self, each: TableRow) -> tuple[Any, ...]:
        """Those first that need a person; then by the order that was asked for."""
        if self.sort == "name":
            return (each.table,)
        if self.sort == "snapshots":
            return (-each.snapshots, each.table)
        if self.sort == "size":
            return (-(each.live or Tally()).bytes, each.table)
        return each.error is None, each.refused is None, -each.victims.bytes, -each.victims.files, each.table
