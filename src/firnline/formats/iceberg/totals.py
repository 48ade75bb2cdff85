"""How many data files a table has, as its snapshots say themselves."""

from __future__ import annotations

import re

from firnline.formats.iceberg.document import Document

_NUMBER = re.compile(r"[0-9]{1,18}")


def largest_total(document: Document) -> int:
    """Returns the most data files that any snapshot's summary tells of; 0 where none does."""
    snapshots = document.get("snapshots") or ()
    summaries = (each.get("summary") for each in snapshots if isinstance(each, dict))
    totals = (str(each.get("total-data-files")) for each in summaries if isinstance(each, dict))
    return max((int(text) for text in totals if _NUMBER.fullmatch(text)), default=0)
