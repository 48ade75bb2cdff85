"""Searches of several tables: whose each root is, and in whose folders each listed object lies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import FirnlineError
from firnline.model.files import FileKind, Root
from firnline.model.locations import stem_of, stems_around
from firnline.model.spans import Flags, Numbers, numbers
from firnline.ports.engines import ServerRoots, TableSearch, TableWalk, Territory
from firnline.ports.expanding import one_order

_NAME = r"(?s)[^/]*\z"


@dataclass(frozen=True, slots=True)
class Walks:
    """What several searches ask for, on each server: one walk of each owner that a search names, and one of all other
    roots. All of a server are opened by one Expand, so a unit that tables share is opened once.

    `needed` are the walks of each search's own roots, `private` those that count for it and not for all; `common` tells
    of each walk whether it counts for all.
    """

    walks: list[TableWalk]
    needed: list[list[int]]
    private: list[list[int]]
    common: Flags

    @staticmethod
    def of(searches: Sequence[TableSearch], needs: Sequence[ServerRoots]) -> Walks:
        named = sorted({owner for each in searches for owner in each.owners | each.private})
        walks_of: dict[str, list[int]] = {owner: [] for owner in named}
        walks: list[TableWalk] = []
        for part in needs:
            starts: dict[str | None, list[Root]] = {}
            for root in part.roots:
                starts.setdefault(root.owner if root.owner in walks_of else None, []).append(Root(root.file, True))
            for owner, roots in starts.items() or [(None, list[Root]())]:
                if owner is not None:
                    walks_of[owner].append(len(walks))
                walks.append(TableWalk(roots, part.expand, Territory(None), server=part.server))
        needed, private = (
            [sorted(walk for owner in some for walk in walks_of[owner]) for some in each]
            for each in ([search.owners for search in searches], [search.private for search in searches])
        )
        common = np.ones(len(walks), dtype=bool)
        common[sorted({walk for some in private for walk in some})] = False
        return Walks(walks, needed, private, common)

    @property
    def kinds(self) -> tuple[FileKind, ...]:
        """The kinds of units."""
        return kinds_of(self.walks)


def kinds_of(parts: Iterable[ServerRoots | TableWalk]) -> tuple[FileKind, ...]:
    """Returns the kinds of units that any part has."""
    return one_order({each.expand.order for each in parts})


def stopped_by(problems: Mapping[int, FirnlineError], common: Flags, private: Sequence[int]) -> FirnlineError | None:
    """Returns what keeps a search from being counted, of what walks could not read. Raises what keeps all of them."""
    for walk, problem in problems.items():
        if common[walk]:
            raise problem
    return next((problems[walk] for walk in private if walk in problems), None)


class Dealer:
    """Deals objects to the searches in whose folders they lie: to each of them where folders lie in one another.
    Picklable.
    """

    def __init__(self, searches: Sequence[TableSearch]) -> None:
        self._by_stem: dict[str, list[int]] = {}
        for number, search in enumerate(searches):
            for stem in dict.fromkeys(map(stem_of, search.folders)):
                self._by_stem.setdefault(stem, []).append(number)

    def __call__(self, identities: pa.Array) -> tuple[Numbers, Numbers]:
        """Returns the places of objects, and the search that each of them is dealt to: sorted by search, then place."""
        folders = pc.replace_substring_regex(identities, _NAME, "").dictionary_encode()
        dealt = [self._searches(folder) for folder in folders.dictionary.to_pylist()]
        of_folder = numbers(folders.indices.to_numpy(zero_copy_only=False))
        firsts = np.cumsum([0, *map(len, dealt)])
        counts = np.diff(firsts)[of_folder]
        places = np.repeat(np.arange(len(of_folder)), counts)
        before = np.repeat(np.cumsum(counts) - counts, counts)
        every = numbers([number for each in dealt for number in each])
        searches = every[firsts[of_folder[places]] + np.arange(len(places)) - before]
        order = np.argsort(searches, kind="stable")
        return places[order], searches[order]

    def _searches(self, folder: str) -> list[int]:
        """Returns the searches that a folder is in, each once: one may have a folder inside another of its own."""
        found = (number for stem in stems_around(folder) for number in self._by_stem.get(stem, ()))
        return sorted(set(found))
