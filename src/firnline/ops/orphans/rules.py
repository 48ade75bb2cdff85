"""What a search is asked for, and by which rules it sorts what nothing names."""

from __future__ import annotations

from dataclasses import dataclass

from firnline.model.locations import known_as
from firnline.model.times import DAY_MS
from firnline.ports.listings import WrittenFolder

FLOOR_MS = DAY_MS
"""Never is anything younger than this taken for garbage: a writer may still be about to commit it."""
DEFAULT_AGE_MS = 3 * DAY_MS


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """The options of a search. `same` are stems that are one; `dead` are uuids of tables that are known to be gone, and
    locations of metadata that nobody has any more; `also` locations of tables that no catalog has.
    """

    older_than_ms: int | None = None
    same: tuple[tuple[str, str], ...] = ()
    dead: frozenset[str] = frozenset()
    also: tuple[str, ...] = ()
    keep_near_misses: bool = False

    @property
    def gone(self) -> frozenset[str]:
        """Those that need nothing: tables by their uuid, metadata by its identity."""
        return self.dead | {known_as(each, self.same) for each in self.dead if "/" in each}

    def cutoff_ms(self, now_ms: int) -> int:
        """Returns what a file must be older than; the floor holds whatever was asked for."""
        asked = now_ms - DEFAULT_AGE_MS if self.older_than_ms is None else self.older_than_ms
        return min(asked, now_ms - FLOOR_MS)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a sort is made from: see `ports.listings.Sort`."""

    cutoff_ms: int
    places: tuple[WrittenFolder, ...]
    others: tuple[str, ...]
    own: tuple[str, ...]
    same: tuple[tuple[str, str], ...]
    by_name: tuple[str, ...] = ()
