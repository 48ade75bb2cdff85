"""Where a table's history lives, in a notebook: snapshots by where they can be read, then the page."""

from __future__ import annotations

from collections import Counter

from firnline.ops.tiers.whereabouts import GONE, TableTiers, tiers_page
from firnline.plans.html.charts import GOES, OTHER, STAYS, Share, share_bar
from firnline.plans.html.markup import Markup, card, figures
from firnline.plans.pages import number, size
from firnline.policy.tiers import LIVE

_COLOURS = {LIVE: STAYS, GONE: GOES}


def tiers_html(found: TableTiers) -> Markup:
    """Returns how many snapshots live where, and how much each tier holds; a snapshot counts in its first tier."""
    homes = Counter(each.tiers[0] if each.tiers else GONE for each in found.snapshots)
    shares = [Share(home, count, number(count), _COLOURS.get(home, OTHER)) for home, count in homes.items()]
    held = {each.tier: size(each.size.bytes) for each in found.holdings}
    return card(
        found.table,
        figures(**{"snapshots_known": number(len(found.snapshots)), **held}),
        share_bar("snapshots by where they live", shares),
        tiers_page(found, False).to_html(),
    )
