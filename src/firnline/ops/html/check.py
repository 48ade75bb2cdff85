"""What a check found, in a notebook."""

from __future__ import annotations

from collections import Counter

from firnline.ops.looking.check import Checked
from firnline.plans.html.charts import GOES, STAYS, Share, count_bars, share_bar
from firnline.plans.html.markup import Markup, card, figures, paragraph, table
from firnline.plans.pages import counted, number, size


def check_html(checked: Checked) -> Markup:
    """Returns the check: how much was looked at, and each fault with what helps."""
    presence = checked.presence
    return card(
        checked.table,
        figures(
            snapshots=number(checked.snapshots),
            files=number(presence.looked_at),
            bytes=size(presence.bytes),
            faults=number(presence.faults),
        ),
        _sound(checked) if checked.sound else _faults(checked),
    )


def _sound(checked: Checked) -> Markup:
    files = counted(checked.presence.looked_at, "file")
    return share_bar("files", [Share("every file is there", max(1, checked.presence.looked_at), files, STAYS)])


def _faults(checked: Checked) -> Markup:
    found = checked.presence.listed
    kinds = Counter(each.kind for each in found).most_common()
    bars = table(("of", "faults", ""), count_bars(kinds, GOES), frozenset({1}))
    rows = ((each.problem, each.kind, each.path, each.hint) for each in found)
    more = checked.presence.faults - len(found)
    cut = paragraph(f"… and {number(more)} more") if more > 0 else ""
    return Markup(f"{bars}{table(('problem', 'kind', 'path', 'hint'), rows)}{cut}")
