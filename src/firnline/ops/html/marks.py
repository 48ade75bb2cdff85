"""Holds, and what `adopt` would write, in a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from firnline.model.holds import Hold
from firnline.ops.marks.adopt import Adoption
from firnline.ops.marks.pages import adoption_page, holds_page
from firnline.plans.html.markup import Markup, card, figures
from firnline.plans.pages import number


def holds_html(holds: Sequence[Hold]) -> Markup:
    """Returns each hold, and how many of them hold the whole table."""
    whole = sum(each.snapshot is None or bool(each.damage) for each in holds)
    said = figures(holds=number(len(holds)), of_the_whole_table=number(whole))
    return card("holds", said, holds_page(holds).to_html())


def adoption_html(adoptions: Sequence[Adoption]) -> Markup:
    """Returns each setting as it is and as the policy needs it."""
    said = figures(settings_to_write=number(len(adoptions)))
    return card("what adopt would write", said, adoption_page(adoptions, "would write").to_html())
