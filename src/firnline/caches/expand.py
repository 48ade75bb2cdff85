"""An Expand that remembers: what a unit named once it names always, as long as its bytes are the same."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from firnline.caches.payload import from_bytes, to_bytes
from firnline.caches.seal import Seal, entry_name
from firnline.caches.stamps import Stamps
from firnline.model.files import File, FileKind
from firnline.ports.cache import Cache
from firnline.ports.formats import Expand
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

    def __call__(self, unit: File) -> pa.RecordBatch:
        name = self.name(unit)
        if name is None:
            return self.expand(unit)
        found = self._found(name)
        if found is not None:
            return found
        batch = self.expand(unit)
        self.cache.put(name, self.seal.close(name, to_bytes(batch)), self.ttl_s)
        return batch

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

    def _found(self, name: str) -> pa.RecordBatch | None:
        sealed = self.cache.get(name)
        payload = None if sealed is None else self.seal.open(name, sealed)
        return None if payload is None else from_bytes(payload)
