"""What a search for orphans found, as a value: its JSON form, and the page that a person reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any

from firnline.model.files import Tally, Totals
from firnline.model.times import HOUR_MS, format_instant, minute
from firnline.plans.kinds import ORPHANS
from firnline.plans.pages import Block, Grid, Hint, Line, Page, size, tally
from firnline.plans.plan import PLAN_VERSION, tally_json, totals_json
from firnline.plans.stages import Stage, in_words, stages_json
from firnline.policy.values import SHORTEST_WRITE_MS
from firnline.ports.listings import ObjectClass

"""What the record of such a run calls itself."""

_WORDS = {
    ObjectClass.NEEDED: "needed by a snapshot, a ref, a hold, a pointer or an undoable run",
    ObjectClass.ANOTHER_TABLE: "needed by another table, or in its folder",
    ObjectClass.OWN_RECORDS: "firnline's own records",
    ObjectClass.YOUNG: "too young: a writer may still be about to commit it",
    ObjectClass.UNKNOWN_AGE: "the store does not say how old it is",
    ObjectClass.UNKNOWN_KIND: "no writer of this format names its files so",
    ObjectClass.OUTSIDE: "outside the folders that the table writes to",
    ObjectClass.NEAR_MISS: "like a needed file except for scheme, authority or encoding",
    ObjectClass.VICTIM: "needed by nobody",
}


@dataclass(frozen=True, slots=True)
class OrphanPlan:
    """What would go and what stays, class by class. `table` is the table's name, or the prefix that was searched."""

    table: str
    format: str
    location: str
    uuid: str
    now_ms: int
    cutoff_ms: int
    listed: Tally
    classes: Mapping[ObjectClass, Tally]
    victims: Totals
    tables: int
    catalogs: tuple[str, ...]
    engine: str
    units_opened: int
    stages: tuple[Stage, ...]
    notes: tuple[str, ...] = ()
    refused: str | None = None
    run: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the contract of `orphans --json`; the classes add up to what was listed."""
        return {
            "version": PLAN_VERSION,
            "kind": ORPHANS,
            "table": self.table,
            "format": self.format,
            "location": self.location,
            "uuid": self.uuid,
            "now": format_instant(self.now_ms),
            **self.found_json(),
            "engine": self.engine,
            "stages": stages_json(self.stages),
            "notes": list(self.notes),
            "run": self.run,
        }

    def found_json(self) -> dict[str, Any]:
        """Returns what was listed, and whom it was held against."""
        return {
            "older_than": format_instant(self.cutoff_ms),
            "listed": tally_json(self.listed),
            "classes": {each.value: tally_json(self.classes.get(each, Tally())) for each in ObjectClass},
            "victims": totals_json(self.victims),
            "tables": self.tables,
            "catalogs": list(self.catalogs),
            "units_opened": self.units_opened,
            "refused": self.refused,
        }


def explain_orphans(plan: OrphanPlan) -> Page:
    return Page(tuple(_blocks(plan)))


def _blocks(plan: OrphanPlan) -> Iterator[Block]:
    yield from listed_blocks(plan)
    by_kind = plan.victims.by_kind
    if by_kind:
        grid = tuple((kind.value, f"{each.files:,}", size(each.bytes)) for kind, each in by_kind.items())
        yield Grid(grid, ("would free", "files", "bytes"), right=frozenset({1, 2}))
    yield from map(Line, plan.notes)
    yield from _ending(plan)


def listed_blocks(plan: OrphanPlan) -> Iterator[Block]:
    """Yields what was listed, class by class."""
    yield Line(f"{plan.table}: {tally(plan.listed)} listed, held against what {plan.tables:,} tables need")
    rows = tuple(
        (each.value, f"{found.files:,}", size(found.bytes), _WORDS[each])
        for each in ObjectClass
        if (found := plan.classes.get(each)) and found.files
    )
    yield Grid(rows, ("class", "files", "bytes", "because"), right=frozenset({1, 2}))


def old_enough(plan: OrphanPlan) -> str:
    """Returns how old a file must be to go; that no younger one ever does, where that is, or nearly is, the bound."""
    at_floor = plan.now_ms - plan.cutoff_ms < 2 * SHORTEST_WRITE_MS  # the listing took its time between the two
    floor = f"; nothing younger than {SHORTEST_WRITE_MS // HOUR_MS} h is ever removed" if at_floor else ""
    return f"only what is older than {minute(plan.cutoff_ms)} counts, by the store's clock{floor}"


def _ending(plan: OrphanPlan) -> Iterator[Block]:
    yield Line(old_enough(plan))
    if plan.refused:
        yield Line(f"a run would refuse: {plan.refused}")
    if not plan.victims.by_kind:
        yield Line("there is nothing to purge")
    elif plan.run is None:
        yield from (Line(f"{number}. would {in_words(stage)}") for number, stage in enumerate(plan.stages, 1))
        yield Line("nothing was changed")
    else:
        yield Line(f"nothing was changed; saved as run: {plan.run}")
        yield Hint(f"carry it out with `firnline commit {quote(str(plan.run))}`; its grace begins then")
