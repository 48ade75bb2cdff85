"""Paimon tables that write to the same folders: no catalog has them, and files of one look like garbage to another.

A data path outside of a table's own folder is the same for every table that names it: Paimon puts no name of the
table into it. So whoever searches such a folder must ask the other tables of the warehouse whether it is theirs too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from firnline.model.locations import identity
from firnline.ops.orphans.neighbours import overlap

_THREADS = 16
Written = Callable[[str], Sequence[str]]
"""Returns the folders that the table at a location writes to, its own first; none where there is no such table."""


def sharing(tables: Sequence[str], written: Written, around: Callable[[str], Iterable[str]]) -> list[str]:
    """Returns the tables around these that write to one of their folders outside, and are none of them.

    Raises where one cannot be read: it may be the one.
    """
    named = {identity(table).rstrip("/") for table in tables}
    found: dict[str, None] = {}
    for table in tables:
        outside = written(table)[1:]
        others = [each for each in around(table) if identity(each).rstrip("/") not in named] if outside else []
        with ThreadPoolExecutor(_THREADS) as pool:
            for other, theirs in zip(others, pool.map(written, others), strict=True):
                if any(overlap(one, each) for one in outside for each in theirs):
                    found[other] = None
    return list(found)
