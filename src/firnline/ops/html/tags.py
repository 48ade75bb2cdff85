"""The tags of a table, in a notebook."""

from __future__ import annotations

from collections.abc import Sequence

from firnline.ops.marks.tags import Tagged
from firnline.plans.html.markup import Markup, card, figures, paragraph, table
from firnline.plans.pages import number


def tags_html(tags: Sequence[Tagged]) -> Markup:
    """Returns each tag, its snapshot, and for how long it is kept."""
    rows = ((each.ref.name, each.ref.snapshot, each.kept_told) for each in tags)
    return card(
        "tags",
        figures(tags=number(len(tags)), kept_for_ever=number(sum(each.until_ms is None for each in tags))),
        table(("tag", "snapshot", "kept"), rows) if tags else paragraph("no tags"),
    )
