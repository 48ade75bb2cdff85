"""Tables of a warehouse that may write to the same folders: no catalog has them, and files of one look like garbage to
another.

A data path outside of a table's own folder may be the same for every table that uses it. Nor do options tell who does:
they change, differ between branches, and a writer may bring its own. What a table wrote there is named in its metadata
for good. So a search of such a folder asks every table of the warehouse, as all tables of a catalog are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from firnline.model.locations import identity
from firnline.ops.orphans.neighbours import overlap

Written = Callable[[str], Sequence[str]]
"""Returns the folders that the table at a location writes to, its own first; none where there is no such table."""


def sharing(
    tables: Sequence[str], searched: Sequence[str], written: Written, around: Callable[[str], Iterable[str]]
) -> list[str]:
    """Returns the tables around those of these that write to a searched folder outside, and are none of them."""
    named = {identity(table).rstrip("/") for table in tables}
    found: dict[str, None] = {}
    for table in tables:
        if any(overlap(one, folder) for one in written(table)[1:] for folder in searched):
            found |= dict.fromkeys(each for each in around(table) if identity(each).rstrip("/") not in named)
    return list(found)
