"""Metadata of a tier's table that its catalog does not name any more: the history is taken up from there, not begun
anew.

1. A REST catalog moves a table by dropping it and registering it again, and a process dies in between; or a tier's
   table is dropped by hand.
2. The next run finds no table. What it placed would hold the snapshots of that run alone, and nobody would find the
   earlier ones.
"""

from __future__ import annotations

from firnline.errors import UnreadableMetadata
from firnline.model.locations import join
from firnline.ops.tiers.tier import Tier
from firnline.ports.formats import State
from firnline.tiers.belonging import is_history_of
from firnline.tiers.places import TierPlaces

_LOOKED_AT = 16
_DOCUMENTS = (".metadata.json", ".metadata.json.gz")


def left_behind(tier: Tier, live: State) -> State | None:
    """Returns the newest metadata of the table's history that lies in the tier; None where there is none. The names of
    metadata begin with their numbers, so only the last are read.
    """
    folder = join(TierPlaces(tier.policy.root).place(live.location), "metadata")
    names = sorted(name for name in tier.store.names(folder) if name.endswith(_DOCUMENTS))
    found = [_read(tier, join(folder, name)) for name in names[-_LOOKED_AT:]]
    own = [each for each in found if each is not None and is_history_of(each.uuid, each.properties, tier.uuid)]
    return max(own, key=tier.format.written_ms, default=None)


def _read(tier: Tier, key: str) -> State | None:
    """Returns the table that a metadata object speaks of; None where it says nothing: one that was cut was never
    placed.
    """
    try:
        return tier.format.table_of(key)
    except UnreadableMetadata:
        return None
