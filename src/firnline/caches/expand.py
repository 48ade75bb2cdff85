"""An Expand that remembers: what a unit named once it names always, as long as its bytes are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from firnline.caches.payload import as_one, from_bytes, to_bytes
from firnline.caches.seal import Seal, entry_name
from firnline.caches.stamps import Stamps
from firnline.model.files import File, FileKind
from firnline.ports.cache import Cache
from firnline.ports.expanding import Expand, Expanded, Together
from firnline.version import VERSION

_LAYOUT = 2
"""Counts up whenever an entry of before would be read wrongly, or an expansion of before would be wrong now."""


@dataclass(frozen=True, slots=True)
class CachedExpand:
    """Opens units and remembers what they name; and recalls it, where the cache has a sealed answer for exactly these
    bytes.

    Only for planning: whoever is about to delete, or asks whether files are there, reads afresh.
    """

    expand: Expand
    format: str
    cache: Cache
    seal: Seal
    stamps: Stamps
    ttl_s: int

    @property
    def order(self) -> tuple[FileKind, ...]:
        return self.expand.order

    @property
    def folds(self) -> bool:
        return self.expand.folds

    def __call__(self, units: Sequence[File], together: Together = map) -> Expanded:
        opened = self.expand(units, together)
        self._remember(self.names(units), opened, together)
        return opened

    def recalled(self, units: Sequence[File], together: Together = map) -> tuple[list[int], Expanded] | None:
        names = self.names(units)
        sealed = together(self._sealed, names)
        rows = [self._unsealed(name, each) for name, each in zip(names, sealed, strict=True)]
        known = {number: found for number, found in enumerate(rows) if found is not None}
        if not known:
            return None
        of = np.repeat(np.array([*known], dtype=np.int64), [len(found) for found in known.values()])
        return [*known], Expanded(as_one([*known.values()]), of)

    def _remember(self, names: Sequence[str | None], opened: Expanded, together: Together) -> None:
        each = zip(names, opened.by_unit(len(names)), strict=True)
        for _ in together(self._put, ((name, rows) for name, rows in each if name is not None)):
            pass

    def _put(self, entry: tuple[str, pa.RecordBatch]) -> None:
        name, rows = entry
        self.cache.put(name, self.seal.close(name, to_bytes(rows)), self.ttl_s)

    def names(self, units: Sequence[File]) -> list[str | None]:
        """Returns the names of the units' entries; None where nothing identifies one's bytes: it is always opened.

        Everything that the answer depends on is in it: the spelling, the length and the number of files that the
        table expects, the store's tag, and which version of firnline decodes.
        """
        made_by = (_LAYOUT, VERSION, self.format)
        return [
            None if stamp is None else entry_name((*made_by, unit.kind.value, unit.key, unit.size, unit.expects, stamp))
            for unit, stamp in zip(units, self.stamps.of([unit.key for unit in units]), strict=True)
        ]

    def _sealed(self, name: str | None) -> bytes | None:
        return None if name is None else self.cache.get(name)

    def _unsealed(self, name: str | None, sealed: bytes | None) -> pa.RecordBatch | None:
        payload = None if name is None or sealed is None else self.seal.open(name, sealed)
        return None if payload is None else from_bytes(payload)
