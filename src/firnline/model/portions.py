"""Which units are opened together. Apart from the spans, which load numpy: that is needed by no command's help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from firnline.model.files import File

MOST_UNITS = 256
MOST_BYTES = 4 << 20
_SIZE_UNKNOWN = 32 << 10
"""What a unit counts as whose size only opening it tells, such as a manifest list."""


def portions(units: Iterable[File], most_units: int = MOST_UNITS, most_bytes: int = MOST_BYTES) -> Iterator[list[File]]:
    """Yields the units in their order, in lists of at most so many units and, but for a larger one alone, bytes."""
    portion: list[File] = []
    size = 0
    for unit in units:
        more = _SIZE_UNKNOWN if unit.size is None else unit.size
        if portion and (len(portion) == most_units or size + more > most_bytes):
            yield portion
            portion, size = [], 0
        portion.append(unit)
        size += more
    if portion:
        yield portion
