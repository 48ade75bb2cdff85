"""The store that streaming readers leave their checkpoints in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firnline.ports.stores import ObjectMeta, Read
    from firnline.stores.ranges import ObjectRanges


@dataclass(frozen=True, slots=True)
class StoredCheckpoints:
    """Reads checkpoints wherever they lie, and can change none. `store` and `ranges` open what they lie in, when one is
    asked for: most tables have no reader.
    """

    store: Callable[[], Read]
    ranges: Callable[[], ObjectRanges]

    def get(self, key: str) -> bytes:
        return self.store().get(key)

    def head(self, key: str) -> ObjectMeta:
        return self.store().head(key)

    def names(self, folder: str) -> Sequence[str]:
        return self.store().names(folder)

    def folders(self, folder: str) -> Sequence[str]:
        """Returns the names of the folders directly in a folder; none of one that does not exist."""
        return [each.rstrip("/").rpartition("/")[2] for each in self.ranges().folders(folder)]
