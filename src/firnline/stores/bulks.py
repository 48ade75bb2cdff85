"""Which deletes go to S3 in one request: those under one prefix, by their names alone.

A purge brings hundreds of thousands of keys, so this looks once at each folder and at each key as little as it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from firnline.errors import StoreError
from firnline.ports.delete import Doomed
from firnline.stores.answers import fits_in_bulk
from firnline.stores.keys import object_key, object_name
from firnline.stores.throttle import prefix_of

Numbered = list[tuple[int, str]]
"""The number of a delete among all of them, and the object's name in its bucket."""


class Prefix(NamedTuple):
    """What shares one budget, and the bucket that it lies in."""

    text: str
    bucket: str


class _Folder(NamedTuple):
    stem: str
    members: Numbered


def in_bulk(doomed: Sequence[Doomed]) -> tuple[dict[Prefix, Numbered], list[int]]:
    """Returns the names that can go together, and the numbers of all other deletes."""
    bulks: dict[Prefix, Numbered] = {}
    folders: dict[str, _Folder | None] = {}
    rest: list[int] = []
    for number, (key, etag) in enumerate(doomed):
        folder, _, name = key.rpartition("/")
        if folder not in folders:
            folders[folder] = _folder(folder, bulks)
        place = folders[folder]
        if place is None or etag is not None or not _is_plain(name):
            rest.append(number)
        else:
            place.members.append((number, place.stem + name))
    return bulks, rest


def _folder(folder: str, bulks: dict[Prefix, Numbered]) -> _Folder | None:
    """Returns where a folder's objects go; None where each has to be looked at by itself."""
    try:
        key = object_key(f"{folder}/x")
        stem = object_name(key)[:-1]
    except StoreError:
        return None
    if key.scheme != "s3" or not fits_in_bulk(stem):
        return None
    return _Folder(stem, bulks.setdefault(Prefix(prefix_of(key), key.authority), []))


def _is_plain(name: str) -> bool:
    """Tells whether a name is one whatever its folder. Others are looked at by themselves, and refused with reason."""
    return name.isprintable() and name not in ("", ".", "..")
