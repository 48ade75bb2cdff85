"""Cutting a listing into pieces: by folders where a store knows them, by the beginnings of keys where it lists in
order.

Whatever the cuts are, the pieces are disjoint and complete: cuts only decide how evenly the work is shared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise

import pyarrow as pa

from firnline.ports.listings import LISTED_COLUMNS, KeyRange

LISTED = pa.schema(zip(LISTED_COLUMNS, (pa.string(), pa.int64(), pa.int64(), pa.string()), strict=True))


First = Callable[[str], str | None]
"""Returns the first key after a string, None where there is none."""

IsLong = Callable[[str], bool]
"""Tells whether more keys begin with a string than one answer of the store holds."""


def by_folders(
    prefix: str, wanted: int, subfolders: Callable[[str], list[str]], *, bundle: bool = False
) -> list[KeyRange]:
    """Returns upper folders as shallow pieces and the folders below them as deep ones.

    `bundle`: very many folders side by side share pieces, bounded by their names.
    """
    pieces: list[KeyRange] = []
    due = deque([prefix])
    while due and len(pieces) + len(due) < wanted:
        folder = due.popleft()
        below = subfolders(folder)
        if bundle and len(below) > 2 * wanted:
            pieces += _bundles(folder, below, wanted)
        else:
            pieces.append(KeyRange(folder, deep=False))
            due.extend(below)
    return [*pieces, *(KeyRange(folder) for folder in due)]


def between(folder: str, cuts: Sequence[str]) -> list[KeyRange]:
    """Returns the pieces of a folder between the cuts, which need not be keys."""
    edges = [None, *sorted(set(cuts)), None]
    return [KeyRange(folder, True, after, until) for after, until in pairwise(edges)]


def cuts_by_keys(first: First, is_long: IsLong, start: str, wanted: int) -> list[str]:
    """Returns beginnings of keys that cut what is under `start` into about `wanted` parts.

    Asks only at chosen places, so it costs a few requests for each cut, however many keys there are. What fits into one
    answer is not cut any further.
    """
    cuts: set[str] = set()
    due = deque([start])
    while due and len(cuts) + 1 < wanted:
        stem = due.popleft()
        found = first(stem) if is_long(stem) else None
        if found is not None:
            branches = _branches(first, stem, found, wanted)
            cuts.update(branches[1:])
            due.extend(branches)
    return sorted(cuts)


def _branches(first: First, stem: str, key: str, most: int) -> list[str]:
    """Returns how keys under the stem begin where they first differ: `…/a`, `…/b`, and so on."""
    length = _where_they_differ(first, stem, key)
    if length is None:
        return []
    branches = [key[:length]]
    while len(branches) < most:
        beyond = _first_beyond(first, branches[-1], stem)
        if beyond is None or len(beyond) < length:
            break
        branches.append(beyond[:length])
    return branches


def _where_they_differ(first: First, stem: str, key: str) -> int | None:
    """Returns the length of the shortest beginning of the first key that not all keys under the stem share."""
    low, step = len(stem), 1
    while _first_beyond(first, key[: min(low + step, len(key))], stem) is None:
        if low + step >= len(key):
            return None
        low, step = low + step, step * 2
    high = min(low + step, len(key))
    while high - low > 1:
        middle = (low + high) // 2
        if _first_beyond(first, key[:middle], stem) is None:
            low = middle
        else:
            high = middle
    return high


def _first_beyond(first: First, beginning: str, stem: str) -> str | None:
    """Returns a key under the stem that comes after all keys with this beginning; None where there is none.

    It may miss a key that is nothing but the next beginning: a cut more or less, never a key.
    """
    code = ord(beginning[-1]) + 1
    if code > 0x10FFFF:
        return None
    following = chr(0xE000 if 0xD800 <= code <= 0xDFFF else code)
    found = first(beginning[:-1] + following)
    return found if found is not None and found.startswith(stem) else None


def _bundles(folder: str, below: Sequence[str], wanted: int) -> list[KeyRange]:
    """Returns pieces of a folder that hold several of its folders each; no folder is in two of them."""
    stems = sorted(f"{each}/" for each in below)
    step = -(-len(stems) // wanted)
    return between(folder, stems[step::step])
