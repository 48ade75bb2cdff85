"""An Expand that remembers: what a unit named once it names always, as long as its bytes are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from firnline.caches.payload import from_bytes, to_bytes
from firnline.caches.seal import Seal, entry_name
from firnline.caches.stamps import Stamps
from firnline.model.files import File, FileKind
from firnline.ports.cache import Cache
from firnline.ports.formats import Expand, Expanded, Together, joined
from firnline.version import VERSION

_LAYOUT = 1
"""Counts up whenever an entry of before would be read wrongly, or an expansion of before would be wrong now."""


@dataclass(frozen=True, slots=True)
class CachedExpand:
    """Expands units from the cache where it has a sealed answer for exactly these bytes, else by opening them.

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
        names = [self.name(unit) for unit in units]
        parts = [([number], found) for number, found in enumerate(together(self._found, names)) if found is not None]
        known = {number for (number,), _ in parts}
        missing = [number for number in range(len(units)) if number not in known]
        if missing:
            opened = self.expand([units[number] for number in missing], together)
            self._remember([names[number] for number in missing], opened, together)
            return joined([*parts, (missing, opened)])
        return joined(parts)

    def _remember(self, names: Sequence[str | None], opened: Expanded, together: Together) -> None:
        each = zip(names, opened.by_unit(len(names)), strict=True)
        for _ in together(self._put, ((name, rows) for name, rows in each if name is not None)):
            pass

    def _put(self, entry: tuple[str, pa.RecordBatch]) -> None:
        name, rows = entry
        self.cache.put(name, self.seal.close(name, to_bytes(rows)), self.ttl_s)

    def name(self, unit: File) -> str | None:
        """Returns the name of the unit's entry; None where nothing identifies its bytes, so that it is always opened.

        Everything that the answer depends on is in it: the spelling, the length and the number of files that the
        table expects, the store's tag, and which version of firnline decodes.
        """
        stamp = self.stamps.of(unit.key)
        if stamp is None:
            return None
        made_by = (_LAYOUT, VERSION, self.format)
        return entry_name((*made_by, unit.kind.value, unit.key, unit.size, unit.expects, stamp))

    def _found(self, name: str | None) -> Expanded | None:
        sealed = None if name is None else self.cache.get(name)
        if name is None or sealed is None:
            return None
        payload = self.seal.open(name, sealed)
        rows = None if payload is None else from_bytes(payload)
        return None if rows is None else Expanded(rows, np.zeros(len(rows), dtype=np.int64))
