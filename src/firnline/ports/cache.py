"""Remembering bytes under a name. The caller must be right without it: a cache may forget, lie or be gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from firnline.ports.expanding import Expand
from firnline.ports.formats import State, TableFormat

CACHE_KEY = "FIRNLINE_CACHE_KEY"
"""The variable with the secret that machines share to seal entries."""

REDIS = ("redis://", "rediss://", "unix://")
"""How an address of Redis begins."""

Remember = Callable[[TableFormat, State, int], Expand]
"""Returns what opens a table's units, where what it found may be remembered for this many milliseconds."""


class Cache(Protocol):
    """Picklable; a copy opens its own connection. Never raises and never blocks for long.

    Entries of one shelf are asked for together, and may lie together. A shelf has 32 hexadecimal digits, a name 64; a
    name is one entry's alone, whatever its shelf.
    """

    def get(self, shelf: str, names: Sequence[str]) -> list[bytes | None]:
        """Returns what is there under each name; None where nothing is, or where it cannot be told quickly.

        Nobody vouches for the bytes: anyone who reaches the cache may have written them.
        """
        ...

    def put(self, shelf: str, entries: Sequence[tuple[str, bytes]], ttl_s: int) -> None:
        """Remembers the bytes under each name for at most this long, where that is possible now."""
        ...


class Sealed(Protocol):
    """Remembers bytes that nobody else can forge. Never raises and never blocks for long."""

    def get(self, parts: Sequence[str | int]) -> bytes | None:
        """Returns what was put under this very name; None if nothing was, or if it is not as it was put."""
        ...

    def put(self, parts: Sequence[str | int], data: bytes) -> None: ...


class Nothing:
    """Remembers nothing."""

    def get(self, parts: Sequence[str | int]) -> bytes | None:
        return None

    def put(self, parts: Sequence[str | int], data: bytes) -> None:
        return None
