"""What the doctor found, in a notebook."""

from __future__ import annotations

from collections import Counter

from firnline.ops.looking.findings import Diagnosis, Severity
from firnline.plans.html.charts import DOUBT, GOES, STAYS, Share, share_bar
from firnline.plans.html.markup import Markup, card, table
from firnline.plans.pages import number

_COLOURS = {Severity.OK: STAYS, Severity.WARNING: DOUBT, Severity.PROBLEM: GOES}


def doctor_html(found: Diagnosis) -> Markup:
    """Returns every finding with what to do about it."""
    counts = Counter(each.level for each in found.findings)
    shares = [Share(level.value, counts[level], number(counts[level]), _COLOURS[level]) for level in Severity]
    rows = ((each.level.value, each.topic, each.said, each.hint) for each in found.findings)
    return card(found.verdict, share_bar("findings", shares), table(("", "of", "found", "hint"), rows))
