"""Which deletes go to S3 in one request, and what a store says of one delete.

A purge brings hundreds of thousands of keys, so this looks once at each folder and at each key as little as it can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from firnline.errors import StoreError
from firnline.ports.delete import Doomed, Fate
from firnline.stores.keys import object_key, object_name
from firnline.stores.throttle import Lane

_NOT_FOR_XML = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the store said of one key. `again`: it may work later; `slow`: it asked for fewer requests."""

    fate: Fate
    error: str = ""
    again: bool = False
    slow: bool = False


UNSENT = Answer(Fate.FAILED, "nothing was sent")


def fits_in_bulk(name: str) -> bool:
    """Tells whether a name survives XML: control characters do not, and must be deleted one by one."""
    return name.isprintable() or _NOT_FOR_XML.search(name) is None


Numbered = list[tuple[int, str]]
"""The number of a delete among all of them, and the object's name in its bucket."""


class Bulk(NamedTuple):
    """The lane in which deletes wait, and the bucket that they go to."""

    lane: Lane
    bucket: str


LaneOf = Callable[[str], Lane]
"""Returns the lane in which deletes in a folder wait."""


class _Folder(NamedTuple):
    stem: str
    members: Numbered


def in_bulk(doomed: Sequence[Doomed], lane_of: LaneOf) -> tuple[dict[Bulk, Numbered], list[int]]:
    """Returns the names that can go together, and the numbers of all other deletes."""
    bulks: dict[Bulk, Numbered] = {}
    folders: dict[str, _Folder | None] = {}
    rest: list[int] = []
    for number, (key, etag) in enumerate(doomed):
        folder, _, name = key.rpartition("/")
        if folder not in folders:
            folders[folder] = _folder(folder, bulks, lane_of)
        place = folders[folder]
        if place is None or etag is not None or not _is_plain(name):
            rest.append(number)
        else:
            place.members.append((number, place.stem + name))
    return bulks, rest


def _folder(folder: str, bulks: dict[Bulk, Numbered], lane_of: LaneOf) -> _Folder | None:
    """Returns the list that takes a folder's deletes, and how all their names begin; None if each has to be looked at
    by itself.
    """
    try:
        key = object_key(f"{folder}/x")
        stem = object_name(key)[:-1]
    except StoreError:
        return None
    if key.scheme != "s3" or not fits_in_bulk(stem):
        return None
    return _Folder(stem, bulks.setdefault(Bulk(lane_of(folder), key.authority), []))


def _is_plain(name: str) -> bool:
    """Tells whether a name is one whatever its folder. Others are looked at by themselves, and refused with reason."""
    return name.isprintable() and name not in ("", ".", "..")
