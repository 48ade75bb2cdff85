"""The pieces of a listing: folders that lie in one another are listed once, and small ones side by side."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from firnline.model.locations import stem_of
from firnline.ops.orphans.neighbours import outermost
from firnline.ports.engines import Engine
from firnline.ports.listings import KeyRange, ListRanges

_PIECES = {"local": 16}
_MOST_PIECES = 128
"""Cutting a bucket costs a few requests for each piece: more than threads or tasks can read at once are a waste."""
_THREADS = 16


def pieces_of(folders: Mapping[str, int], engine: Engine, ranges: ListRanges) -> list[KeyRange]:
    """Returns what an engine lists of some folders, each with about how many files there are: larger ones in more
    pieces. What lies in two of them is in one piece.
    """
    weights = _outer(folders)
    most, every = _PIECES.get(engine.name, _MOST_PIECES), max(1, sum(weights.values()))
    wanted = [(folder, max(1, round(most * weight / every))) for folder, weight in weights.items()]
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(chain.from_iterable(pool.map(lambda each: ranges.split(*each), wanted)))


def _outer(folders: Mapping[str, int]) -> dict[str, int]:
    """Returns the outermost folders, each with all that lies in it."""
    outer = {stem_of(folder): folder for folder in outermost(folders)}
    stems = sorted(outer)
    found = dict.fromkeys(outer.values(), 0)
    for folder, weight in folders.items():
        found[outer[stems[bisect_right(stems, stem_of(folder)) - 1]]] += max(1, weight)
    return found
