"""Finding in a tier what a live table has no more."""

from __future__ import annotations

from collections.abc import Iterator

from firnline.model.snapshots import SnapshotId
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.tier import Tier
from firnline.policy.tiers import tier_named
from firnline.ports.formats import State
from firnline.tiers.belonging import history_of


def open_for(work: TableContext, state: State, name: str, location: str | None = None) -> Tier:
    """Returns a tier for the history that a table holds: its own, or, of a tier's table, the live one's. `location` is
    where the table was when it was looked at before, where that was elsewhere.
    """
    uuid = history_of(state.uuid, state.properties)
    return work.open_tier(work.source.name, name, uuid).following(location or state.location)


def tiers_by_snapshot(work: TableContext, live: State) -> dict[SnapshotId, str]:
    """Returns, by the ids of snapshots, the first tier that has each."""
    found: dict[SnapshotId, str] = {}
    for tier, there in histories(work, live):
        found = {**dict.fromkeys(there.graph.by_id, tier.policy.name), **found}
    return found


def histories(work: TableContext, live: State) -> Iterator[tuple[Tier, State]]:
    """Yields the tables that hold history of a live table, with their tiers, in the order of `tiers_for`."""
    for tier in tiers_for(work, live):
        found = tier.find()
        if found is not None:
            yield tier, found


def tiers_for(work: TableContext, live: State) -> Iterator[Tier]:
    """Yields the tiers to which history of a live table may have gone, in the order of firnline.yaml: those first that
    can be read at once. A table without a catalog has none; of a tier's table it is the other tiers.
    """
    own = work.source.name.catalog
    names = [name for name in work.config.tiers if own not in ("", name)]
    for name in sorted(names, key=lambda each: tier_named(work.config.tiers, each).bundle is not None):
        yield open_for(work, live, name)
