"""Removing firnline's own objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from firnline.errors import StoreError
from firnline.ports.delete import Doomed
from firnline.ports.discard import OwnKey
from firnline.stores.delete import ObjectDelete


class OwnDiscard:
    """Discards own objects wherever they lie; outcomes do not matter."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self._delete = ObjectDelete(properties)

    def discard(self, keys: Sequence[OwnKey]) -> None:
        with suppress(StoreError):
            self._delete.delete([Doomed(str(key)) for key in keys])
