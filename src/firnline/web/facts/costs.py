"""What the history of tables costs in each tier, added up over a lake."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firnline.model.files import Tally
from firnline.plans.plan import tally_json

if TYPE_CHECKING:
    from firnline.lake import Lake
    from firnline.ops.tiers.whereabouts import Holding


@dataclass(frozen=True, slots=True)
class TierCost:
    """What a tier holds of several tables. `monthly` is None where no price is known of it."""

    tier: str
    tables: int
    size: Tally
    monthly: float | None

    def to_json(self) -> dict[str, Any]:
        return {"tier": self.tier, "tables": self.tables, **tally_json(self.size), "monthly": self.monthly}


def holdings_of(lake: Lake, table: str) -> tuple[Holding, ...]:
    """Returns what each tier holds of a table, and the live table itself, as its page of tiers has it; nothing of a
    table that no tier has anything of: its files are not counted.
    """
    from firnline.ops.tiers.finding import histories

    work = lake.places.table_context(table)
    return lake.tiers(table).holdings if any(histories(work, work.source.load())) else ()


def tier_costs(found: Iterable[Iterable[Holding]]) -> list[TierCost]:
    """Returns each tier with what it holds of all these tables, in the order in which tiers are first met."""
    by_tier: dict[str, list[Holding]] = {}
    for holdings in found:
        for each in holdings:
            by_tier.setdefault(each.tier, []).append(each)
    return [_added(tier, every) for tier, every in by_tier.items()]


def _added(tier: str, every: list[Holding]) -> TierCost:
    known = [each.monthly for each in every if each.monthly is not None]
    monthly = sum(known) if len(known) == len(every) else None
    return TierCost(tier, len(every), sum((each.size for each in every), Tally()), monthly)
