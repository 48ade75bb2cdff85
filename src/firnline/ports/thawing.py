"""Objects of archive classes, which can be read only for some days after they were asked for."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Warmth(StrEnum):
    READABLE = "readable"
    UNDER_WAY = "under way"
    FROZEN = "frozen"


class Thaw(Protocol):
    """Asks a store to make objects readable. Picklable."""

    def warmth(self, key: str) -> Warmth:
        """Tells whether an object can be read now, will be by itself, or must be asked for. Raises ObjectNotFound."""
        ...

    def request(self, key: str, days: int, speed: str) -> None:
        """Asks for an object: it is readable for `days` from when it comes. `speed` is bulk, standard or expedited.

        One that is under way already stays as it is; the days of one that is readable for a time are extended; one of
        any other class is readable anyway. Raises ObjectNotFound, and PermanentStoreError for a speed that the object's
        class does not know.
        """
        ...
