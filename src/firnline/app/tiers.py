"""Opening tiers, and what is asked of them: `archive` and `tiers`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firnline.errors import PolicyError
from firnline.formats.registry import kit_named
from firnline.ops.tiers.tier import Tier
from firnline.policy.tiers import tier_named
from firnline.ports.catalogs import TableName

if TYPE_CHECKING:
    from firnline.app.places import Places


def open_tier(places: Places, table: TableName, tier: str) -> Tier:
    """Returns a tier for a live table, reached with the settings of the catalog of the tier's name. Raises PolicyError
    where there is no such tier, or no such catalog.
    """
    from firnline.app.stores import read_only, store_settings

    policy = tier_named(places.config.tiers, tier)
    if tier not in places.catalogs.configured:
        raise PolicyError(
            f"the tier {tier!r} has no catalog",
            hint=f"configure a catalog named {tier} for PyIceberg, such as a SQLite file: its tables are found there",
        )
    catalog = places.catalogs.open(tier)
    settings = store_settings(places.catalogs.settings(tier).properties)
    store = places.stores.open(settings)
    return Tier(
        policy=policy,
        table=TableName(tier, table.namespace, table.name),
        catalog=catalog,
        store=store,
        format=kit_named(catalog.format).format(read_only(store)),
        copy=places.stores.copying(places.stores.settings_of(table), settings, policy.storage_class),
        many=places.engines.copy_many(table, policy.root),
        ranges=places.stores.ranges(settings),
    )
