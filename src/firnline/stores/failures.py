"""How a store's failures are told apart: gone, taken, worth another try, or never going to work."""

from __future__ import annotations

from firnline.errors import StoreError


class PermanentStoreError(StoreError):
    """Asking again cannot help: the key is malformed, the scheme unknown, or the store denies access."""
