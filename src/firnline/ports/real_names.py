"""What a file is really called: one path, by whatever links and mounts it is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class RealNames(Protocol):
    """Makes real identities of identities. Picklable, because executors compare names too."""

    def __call__(self, name: str) -> str:
        """Returns the real identity of a file or, with a slash at its end, of a folder."""
        ...

    def column(self, names: pa.Array) -> pa.Array:
        """Returns the same of many; the very same array where every name is real already."""
        ...


class AsCalled:
    """Takes every name for the real one: for stores that have neither links nor mounts."""

    def __call__(self, name: str) -> str:
        return name

    def column(self, names: pa.Array) -> pa.Array:
        return names
