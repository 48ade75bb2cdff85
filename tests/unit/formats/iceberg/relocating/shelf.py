"""The place that files are handed to, and the store that has some of them there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from firnline.errors import ObjectNotFound
from firnline.formats.iceberg.relocating import IcebergRelocation
from firnline.ports.stores import ObjectMeta
from firnline.tiers.places import TierPlaces

COLD = TierPlaces("s3://cold/keep")
KEY = "s3://lake/t/metadata/file"


@dataclass
class Shelf:
    """Tells the sizes of objects, and counts who asks."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)

    def head(self, key: str) -> ObjectMeta:
        self.asked[key] += 1
        if key not in self.sizes:
            raise ObjectNotFound(f"no object {key}")
        return ObjectMeta(key, self.sizes[key])


def relocation(sizes: Mapping[str, int] | None = None) -> IcebergRelocation:
    """Returns what rewrites files, where those of the live table's paths have these sizes in the other place."""
    return IcebergRelocation(COLD, Shelf({COLD.place(path): size for path, size in (sizes or {}).items()}))
