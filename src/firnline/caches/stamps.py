"""What identifies the bytes of each unit now, from one listing: a thousand objects for one request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np

from firnline.errors import FirnlineError
from firnline.model.files import File
from firnline.model.locations import spellings
from firnline.ports.stores import List, ObjectMeta

_MOST_FOLDERS = 8
_FEWEST_LISTED, _LISTED_PER_ROOT = 100_000, 20
_NAME_BYTES, _STAMP_BYTES = 8, 16


class Stamps:
    """A stamp for every object that was listed: 24 bytes each, so that millions travel to executors."""

    def __init__(self, listed: Iterable[ObjectMeta] = ()) -> None:
        rows = [(_name(each.key), _stamp(each)) for each in listed if each.etag is not None]
        names = np.frombuffer(b"".join(name for name, _ in rows), dtype=">u8")
        stamps = np.frombuffer(b"".join(stamp for _, stamp in rows), dtype=f"V{_STAMP_BYTES}")
        order = np.argsort(names, kind="stable")
        self._names: np.ndarray[Any, Any] = names[order]
        self._stamps: np.ndarray[Any, Any] = stamps[order]

    def __len__(self) -> int:
        return len(self._names)

    def of(self, keys: Sequence[str]) -> list[bytes | None]:
        """Returns what identifies each object's bytes; None where it was not listed, so that nobody relies on it.

        Two objects of one name (the names are shortened) would vouch for each other: then neither has a stamp.
        """
        names = np.frombuffer(b"".join(map(_name, keys)), dtype=">u8")
        firsts, ends = (np.searchsorted(self._names, names, side).tolist() for side in ("left", "right"))
        return [
            self._stamps[first].tobytes() if end - first == 1 else None for first, end in zip(firsts, ends, strict=True)
        ]


def look_up(store: List, units: Iterable[File]) -> Stamps:
    """Returns stamps for what lies beside these units: manifests are written where their lists are.

    A listing that fails, or that is far longer than the table has units, gives fewer stamps; units without one are
    read as if there were no cache.
    """
    folders = Counter(unit.key.rpartition("/")[0] for unit in units if unit.opens)
    most = max(_FEWEST_LISTED, _LISTED_PER_ROOT * folders.total())
    return Stamps(islice(_listed(store, [folder for folder, _ in folders.most_common(_MOST_FOLDERS)]), most))


def _listed(store: List, folders: Iterable[str]) -> Iterator[ObjectMeta]:
    for folder in folders:
        try:
            yield from store.list(folder)
        except FirnlineError:
            continue


def _name(key: str) -> bytes:
    return blake2b(spellings(key).identity.encode("utf-8", "surrogatepass"), digest_size=_NAME_BYTES).digest()


def _stamp(meta: ObjectMeta) -> bytes:
    said = f"{meta.etag}\n{meta.size}\n{meta.modified_ms}"
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=_STAMP_BYTES).digest()
