"""What a search found, in a notebook: each class as its share of the bytes that were listed, then the page."""

from __future__ import annotations

from firnline.plans.html.charts import DOUBT, GOES, OTHER, STAYS, Share, share_bar
from firnline.plans.html.markup import Markup, card, figures
from firnline.plans.orphans import OrphanPlan, explain_orphans
from firnline.plans.pages import number, size, tally
from firnline.ports.listings import ObjectClass

_COLOURS = {
    ObjectClass.NEEDED: STAYS,
    ObjectClass.ANOTHER_TABLE: STAYS,
    ObjectClass.VICTIM: GOES,
    ObjectClass.NEAR_MISS: DOUBT,
    ObjectClass.UNKNOWN_AGE: DOUBT,
    ObjectClass.UNKNOWN_KIND: DOUBT,
}


def orphans_html(plan: OrphanPlan, *after: str) -> Markup:
    """Returns the search for a notebook, and what became of it; the figures are those of its JSON."""
    victims = plan.victims.all
    found = [(each, plan.classes[each]) for each in ObjectClass if each in plan.classes]
    shares = [Share(each.value, what.bytes, tally(what), _COLOURS.get(each, OTHER)) for each, what in found]
    return card(
        plan.table,
        figures(
            files_listed=number(plan.listed.files),
            bytes_listed=size(plan.listed.bytes),
            files_to_free=number(victims.files),
            bytes_to_free=size(victims.bytes),
        ),
        share_bar("bytes that were listed", shares),
        explain_orphans(plan).to_html(),
        *after,
    )
