"""What a search is asked for, and by which rules it sorts what nothing names."""

from __future__ import annotations

from dataclasses import dataclass

from firnline.model.locations import known_as
from firnline.policy.values import LONGEST_WRITE_MS, SHORTEST_WRITE_MS
from firnline.ports.listings import WrittenFolder


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """The options of a search. `same` are stems that are one; `dead` are uuids of tables that are known to be gone, and
    locations of metadata that nobody has any more; `also` locations of tables that no catalog has. `longest_write_ms`
    is how long a write may take, from its first file to its commit: what is younger may be of one that is still open,
    and stays unless the operator names an instant. `backups_ms` is for how long earlier versions of metadata are kept
    that writers leave behind; None for ever.
    """

    older_than_ms: int | None = None
    same: tuple[tuple[str, str], ...] = ()
    dead: frozenset[str] = frozenset()
    also: tuple[str, ...] = ()
    keep_near_misses: bool = False
    longest_write_ms: int = LONGEST_WRITE_MS
    backups_ms: int | None = None

    @property
    def gone(self) -> frozenset[str]:
        """Those that need nothing: tables by their uuid, metadata by its identity."""
        return self.dead | {known_as(each, self.same) for each in self.dead if "/" in each}

    def cutoff_ms(self, now_ms: int) -> int:
        """Returns what a file must be older than; the floor holds whatever was asked for."""
        asked = now_ms - self.longest_write_ms if self.older_than_ms is None else self.older_than_ms
        return min(asked, now_ms - SHORTEST_WRITE_MS)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a sort is made from: see `ports.listings.Sort`."""

    cutoff_ms: int
    places: tuple[WrittenFolder, ...]
    others: tuple[str, ...]
    own: tuple[str, ...]
    same: tuple[tuple[str, str], ...]
    by_name: tuple[str, ...] = ()
