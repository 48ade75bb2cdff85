"""The tables of a lake, in a notebook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from firnline.model.names import written
from firnline.plans.html.charts import count_bars
from firnline.plans.html.markup import Markup, card, figures, paragraph, table
from firnline.plans.pages import number
from firnline.ports.catalogs import TableName

SHOWN = 200


def tables_html(names: Sequence[TableName]) -> Markup:
    """Returns how many tables there are where, and their names; a long list is cut, and says so."""
    spaces = Counter(written((each.catalog, *each.namespace)) if each.catalog else "by location" for each in names)
    cut = len(names) - SHOWN
    return card(
        "tables",
        figures(tables=number(len(names)), namespaces=number(len(spaces))),
        table(("namespace", "tables", ""), count_bars(spaces.most_common(SHOWN)), frozenset({1})) if spaces else "",
        table(("table",), ([str(each)] for each in names[:SHOWN])) if names else paragraph("no tables"),
        paragraph(f"… and {number(cut)} more") if cut > 0 else "",
    )
