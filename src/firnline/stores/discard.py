"""Removing firnline's own objects."""

from __future__ import annotations

from collections.abc import Sequence

from firnline.ports.discard import OwnKey
from firnline.stores.delete import ObjectDelete


class OwnDiscard:
    """Discards own objects wherever they lie; outcomes do not matter."""

    def discard(self, keys: Sequence[OwnKey]) -> None:
        ObjectDelete().delete([str(key) for key in keys])
