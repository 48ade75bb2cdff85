"""Taking a table's own metadata out of its folder, for formats whose commits are files that come and go."""

from __future__ import annotations

from typing import Protocol


class Retire(Protocol):
    def retire(self, key: str, data: bytes) -> bool:
        """Removes a metadata object whose bytes the caller has kept, where it still has exactly these; tells whether
        it was there.

        One that is gone, or says something else by now, is another writer's and left alone. Raises StoreError
        where nobody can tell whether it is gone.
        """
        ...

    def retire_folder(self, folder: str) -> None:
        """Removes a folder in which nothing is left but folders, where the store has folders at all.

        One that is not empty stays as it is, and so does all in it.
        """
        ...
