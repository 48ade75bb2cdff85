"""Where each snapshot of a table lives: in the live table, in a tier, or nowhere any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firnline.history.listing import id_of, time_of
from firnline.model.files import Tally
from firnline.model.snapshots import SnapshotId
from firnline.model.times import format_instant, minute
from firnline.ops.tiers.waking import RestoreNote
from firnline.plans.pages import Block, Grid, Line, Page, counted, tally
from firnline.plans.plan import tally_json
from firnline.policy.prices import STANDARD, Price
from firnline.policy.tiers import LIVE
from firnline.ports.formats import State

GONE = "gone"
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """One snapshot: where it can be read, None where it cannot, and the refs that name it there."""

    id: SnapshotId
    timestamp_ms: int
    tiers: tuple[str, ...]
    refs: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "snapshot": self.id,
            "timestamp": format_instant(self.timestamp_ms),
            "tiers": list(self.tiers),
            "refs": list(self.refs),
        }


@dataclass(frozen=True, slots=True)
class Holding:
    """What one tier holds of the table: under which name, and how much. `monthly` is None where no price is known."""

    tier: str
    table: str
    snapshots: int
    size: Tally
    monthly: float | None

    def to_json(self) -> dict[str, Any]:
        said = {"tier": self.tier, "table": self.table, "snapshots": self.snapshots}
        return {**said, **tally_json(self.size), "monthly": self.monthly}


@dataclass(frozen=True, slots=True)
class TableTiers:
    """All that is known of where a table's history lives, the newest first; and what was asked of archives."""

    table: str
    holdings: tuple[Holding, ...]
    snapshots: tuple[Whereabouts, ...]
    restores: tuple[RestoreNote, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "tiers": [each.to_json() for each in self.holdings],
            "snapshots": [each.to_json() for each in self.snapshots],
            "restores": [each.to_json() for each in self.restores],
        }

    def __str__(self) -> str:
        return tiers_page(self, everything=False).to_text()

    def _repr_html_(self) -> str:
        from firnline.ops.html.tiers import tiers_html

        return tiers_html(self)


def whereabouts(
    live: State, tiers: Mapping[str, State], remembered: Iterable[Mapping[str, Any]]
) -> tuple[Whereabouts, ...]:
    """Returns every snapshot that the table, a tier or the table's history knows, newest first."""
    times = {id_of(entry): time_of(entry) for entry in remembered}
    found: dict[SnapshotId, tuple[list[str], set[str]]] = {each: ([], set()) for each in times}
    for name, state in {LIVE: live, **tiers}.items():
        for snapshot in state.graph:
            times[snapshot.id] = snapshot.timestamp_ms
            found.setdefault(snapshot.id, ([], set()))[0].append(name)
        for ref in state.refs.values():
            if ref.snapshot in found and (name == LIVE or ref.name != "main"):
                found[ref.snapshot][1].add(ref.name)
    newest = sorted(found, key=lambda each: (times[each], each), reverse=True)
    return tuple(
        Whereabouts(each, times[each], tuple(found[each][0]), tuple(sorted(found[each][1]))) for each in newest
    )


def holding(tier: str, state: State, size: Tally, price: Price | None) -> Holding:
    return Holding(tier, state.table, len(state.graph), size, None if price is None else price.monthly(size.bytes))


def price_of(prices: Mapping[str, Price], storage_class: str | None) -> Price | None:
    return prices.get(storage_class or STANDARD)


def tiers_page(found: TableTiers, everything: bool) -> Page:
    """Returns what a person reads; long lists are cut unless `everything` is asked for."""
    rows = tuple(
        (each.id, minute(each.timestamp_ms), ", ".join(each.tiers) or GONE, ", ".join(each.refs))
        for each in found.snapshots
    )
    shown = rows if everything else rows[:_SHOWN]
    blocks: list[Block] = [Line(f"{found.table}: {counted(len(rows), 'snapshot')} known")]
    blocks.append(Grid(shown, ("snapshot", "time (UTC)", "lives in", "refs")))
    if len(rows) > len(shown):
        blocks.append(Line(f"  … and {len(rows) - len(shown):,} older (--list shows them)"))
    sums = tuple(
        (each.tier, each.table, f"{each.snapshots:,}", tally(each.size), monthly(each.monthly))
        for each in found.holdings
    )
    blocks.append(Grid(sums, ("tier", "table", "snapshots", "holds", "a month"), right=frozenset({2, 4})))
    return Page((*blocks, *_restores(found.restores, everything)))


def _restores(notes: Sequence[RestoreNote], everything: bool) -> Iterator[Block]:
    """Yields who asked for what sleeps in an archive, the last first."""
    rows = [(each.at, each.event, each.snapshot, each.to, each.case, each.by) for each in reversed(notes)]
    if rows:
        shown = rows if everything else rows[:_SHOWN]
        yield Grid(tuple(shown), ("asked at", "event", "snapshot", "to", "case", "by"))


def monthly(amount: float | None) -> str:
    """Returns dollars as they are shown."""
    return "unknown" if amount is None else f"${amount:,.4f}"
