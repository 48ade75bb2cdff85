"""Which units are opened together: enough that a call is worth it, and few enough to hold in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from firnline.model.files import File

MOST_UNITS = 256
MOST_BYTES = 4 << 20
_SIZE_UNKNOWN = 32 << 10
"""What a unit counts as whose size only opening it tells, such as a manifest list."""


def portions(units: Iterable[File]) -> Iterator[list[File]]:
    """Yields the units in their order, in lists of at most MOST_UNITS and, but for a larger one alone, MOST_BYTES."""
    portion: list[File] = []
    size = 0
    for unit in units:
        more = _SIZE_UNKNOWN if unit.size is None else unit.size
        if portion and (len(portion) == MOST_UNITS or size + more > MOST_BYTES):
            yield portion
            portion, size = [], 0
        portion.append(unit)
        size += more
    if portion:
        yield portion
