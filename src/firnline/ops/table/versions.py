"""How much of a table its metadata's versions are."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from firnline.errors import FirnlineError, StoreError
from firnline.model.locations import identity
from firnline.plans.metadata_versions import MetadataVersions
from firnline.ports.abilities import KeepsVersions
from firnline.ports.formats import State, TableFormat
from firnline.ports.stores import Head, List, Read

FEWER = 20
"""So many earlier versions are proposed: enough for a commit to be found again in the log of a busy table."""
_MEASURED, _THREADS = 256, 16
"""The newest so many are asked for their size: a log may name thousands, and a plan does not wait for all of them."""
_LISTED = 5_000
"""So many objects of a folder are looked through, where many tables are planned: some requests for each table."""


def counted_versions(table_format: TableFormat, state: State) -> MetadataVersions | None:
    """Returns the versions, all of unknown size: nothing is asked. None for a format without such a log."""
    if not isinstance(table_format, KeepsVersions):
        return None
    return _told(table_format, state, [None for _ in table_format.versions(state)])


def listed_versions(table_format: TableFormat, state: State, store: Read) -> MetadataVersions | None:
    """Returns the versions with their sizes, by one listing of their folder: plans of a thousand tables cannot ask a
    bucket for each version. What the listing does not show is of unknown size.
    """
    if not isinstance(table_format, KeepsVersions):
        return None
    keys = [key for key, _ in table_format.versions(state)]
    if identity(keys[-1]).startswith("file:"):  # quicker than a listing, which reads a folder of a disk to its end
        return sized_versions(table_format, state, store)
    there = _listed(store, keys)
    return _told(table_format, state, [there.get(identity(key)) for key in keys])


def sized_versions(table_format: TableFormat, state: State, store: Head) -> MetadataVersions | None:
    """Returns the versions with their sizes. One that cannot be asked for is of unknown size, and stops no plan: none
    of them goes by it.
    """
    if not isinstance(table_format, KeepsVersions):
        return None
    keys = [key for key, _ in table_format.versions(state)]
    asked = _sizes(store, keys[-_MEASURED:])
    return _told(table_format, state, [None] * (len(keys) - len(asked)) + asked)


def _told(table_format: KeepsVersions, state: State, sizes: Sequence[int | None]) -> MetadataVersions:
    known = [each for each in sizes if each is not None]
    setting = table_format.clearing(state, FEWER)
    left = sizes[-FEWER - 1 :]
    worth = setting is not None and len(sizes) > len(left) and None not in left
    return MetadataVersions(
        len(sizes),
        sum(known),
        len(sizes) - len(known),
        cleared=setting is None,
        setting=setting if worth else None,
        left=len(left) if worth else 0,
        left_bytes=sum(each or 0 for each in left) if worth else 0,
    )


def _listed(store: List, keys: Sequence[str]) -> dict[str, int]:
    """Returns the sizes of those that lie beside the newest one, by their identities; where the listing fails or is too
    long, of those that it had shown.
    """
    wanted = {identity(key) for key in keys}
    names = {key.rpartition("/")[2] for key in wanted}
    there: dict[str, int] = {}
    try:
        for each in islice(store.list(keys[-1].rpartition("/")[0]), _LISTED):
            if each.key.rpartition("/")[2] in names:
                there[identity(each.key)] = each.size
    except StoreError:
        pass  # a figure that only informs stops no plan
    return {name: size for name, size in there.items() if name in wanted}


def _sizes(store: Head, keys: Sequence[str]) -> list[int | None]:
    if len(keys) == 1:
        return [_size(store, keys[0])]
    with ThreadPoolExecutor(min(_THREADS, len(keys))) as pool:
        return list(pool.map(lambda key: _size(store, key), keys))


def _size(store: Head, key: str) -> int | None:
    try:
        return store.head(key).size
    except FirnlineError:
        return None
