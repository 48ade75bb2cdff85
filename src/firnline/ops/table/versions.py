"""How much of a table its metadata's versions are."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from firnline.errors import FirnlineError
from firnline.plans.metadata_versions import MetadataVersions
from firnline.ports.abilities import KeepsVersions
from firnline.ports.formats import State, TableFormat
from firnline.ports.stores import Head

FEWER = 20
"""So many earlier versions are proposed: enough for a commit to be found again in the log of a busy table."""
_MEASURED, _THREADS = 256, 16
"""The newest so many are asked for their size: a log may name thousands, and a plan does not wait for all of them."""


def counted_versions(table_format: TableFormat, state: State) -> MetadataVersions | None:
    """Returns how many versions the table's log names, and asks no store; None for a format without such a log."""
    if not isinstance(table_format, KeepsVersions):
        return None
    versions = len(table_format.versions(state))
    return MetadataVersions(versions, unsized=versions, cleared=table_format.clearing(state, FEWER) is None)


def sized_versions(table_format: TableFormat, state: State, store: Head) -> MetadataVersions | None:
    """Returns the versions with their sizes. One that cannot be asked for is of unknown size, and stops no plan: none
    of them goes by it.
    """
    if not isinstance(table_format, KeepsVersions):
        return None
    keys = [key for key, _ in table_format.versions(state)]
    sizes = _sizes(store, keys[-_MEASURED:])
    known = [each for each in sizes if each is not None]
    setting = table_format.clearing(state, FEWER)
    left = sizes[-FEWER - 1 :]
    worth = setting is not None and len(keys) > len(left) and None not in left
    return MetadataVersions(
        len(keys),
        sum(known),
        len(keys) - len(known),
        cleared=setting is None,
        setting=setting if worth else None,
        left=len(left) if worth else 0,
        left_bytes=sum(each or 0 for each in left) if worth else 0,
    )


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
