"""How many files a walk of a table meets, as far as its snapshots say so themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from firnline.formats.iceberg.document import Document

_NUMBER = re.compile(r"[0-9]{1,12}")
"""No table has a trillion files: what says so, or less than none, says nothing."""


def files_told(document: Document) -> int:
    """Returns how many files the summaries tell of; 0 where none does.

    That is the most that any snapshot has, or all that were ever added if these are more: a table of ten files that
    are written anew every minute has many files in its history, and a walk meets each of them.
    """
    summaries = list(_summaries(document))
    most = max((_told(each, "total") for each in summaries), default=0)
    return max(most, sum(_told(each, "added") for each in summaries))


def _summaries(document: Document) -> Iterator[dict[str, Any]]:
    snapshots = document.get("snapshots") or ()
    summaries = (each.get("summary") for each in snapshots if isinstance(each, dict))
    return (each for each in summaries if isinstance(each, dict))


def _told(summary: dict[str, Any], which: str) -> int:
    texts = (str(summary.get(f"{which}-{kind}-files")) for kind in ("data", "delete"))
    return sum(int(text) for text in texts if _NUMBER.fullmatch(text))
