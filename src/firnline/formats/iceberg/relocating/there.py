"""How large the files are that lie in the other place already."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from firnline.formats.iceberg.relocating.naming import Sizes
from firnline.ports.stores import Head

_AT_ONCE: Final = 8
_KNOWN: Final = 100_000


class SizesThere:
    """Asks a store for sizes, and remembers them while files are relocated: nothing that a place holds is overwritten,
    and the lists of a history name nearly all the same manifests.
    """

    def __init__(self, target: Head) -> None:
        self._target = target
        self._known: dict[str, int] = {}

    def sizes(self, places: Mapping[str, str]) -> Sizes:
        """Returns the sizes of files by what `places` calls them. Raises ObjectNotFound where one is not there."""
        known = {key: size for key in places.values() if (size := self._known.get(key)) is not None}
        if unknown := [key for key in places.values() if key not in known]:
            known |= self._asked(unknown)
        return {path: known[key] for path, key in places.items()}

    def _asked(self, keys: list[str]) -> dict[str, int]:
        if len(keys) == 1:
            found = [self._size(keys[0])]
        else:
            with ThreadPoolExecutor(min(_AT_ONCE, len(keys))) as pool:
                found = list(pool.map(self._size, keys))
        asked = dict(zip(keys, found, strict=True))
        if len(self._known) > _KNOWN:
            self._known.clear()
        self._known.update(asked)
        return asked

    def _size(self, key: str) -> int:
        return self._target.head(key).size
