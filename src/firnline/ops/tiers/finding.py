"""Finding in a tier what a live table has no more."""

from __future__ import annotations

from collections.abc import Iterator

from firnline.model.snapshots import SnapshotId
from firnline.ops.table.context import TableContext
from firnline.ops.tiers.tier import Tier
from firnline.ports.formats import State


def tiers_by_snapshot(work: TableContext, live: State) -> dict[SnapshotId, str]:
    """Returns, by the ids of snapshots, the first tier that has each."""
    found: dict[SnapshotId, str] = {}
    for tier, there in histories(work, live):
        found = {**dict.fromkeys(there.graph.by_id, tier.policy.name), **found}
    return found


def histories(work: TableContext, live: State) -> Iterator[tuple[Tier, State]]:
    """Yields the tables that hold history of a live table, with their tiers, in the order of firnline.yaml. A table
    without a catalog has none.
    """
    for name in work.config.tiers if work.source.name.catalog not in ("", *work.config.tiers) else ():
        tier = work.open_tier(work.source.name, name).following(live.uuid, live.location)
        found = tier.find(live.uuid)
        if found is not None:
            yield tier, found
