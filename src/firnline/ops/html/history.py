"""A table's days, in a notebook: the picture that `--plot` draws, and the figures under it."""

from __future__ import annotations

from firnline.ops.history.timeline import Timeline, svg_of, timeline_page
from firnline.plans.html.markup import Markup, card, figures, paragraph
from firnline.plans.pages import number


def history_html(timeline: Timeline, trouble: str | None = None) -> Markup:
    """Returns the days, and what of them could not be read."""
    return card(
        timeline.table,
        figures(
            live_snapshots=number(timeline.live),
            expired_snapshots="-" if timeline.is_blind else number(timeline.expired),
            days=number(len(timeline.by_day)),
        ),
        "" if trouble is None else paragraph(f"not all could be read: {trouble}"),
        Markup(svg_of(timeline, fits=True)) if timeline.by_day else "",
        timeline_page(timeline).to_html(),
    )
