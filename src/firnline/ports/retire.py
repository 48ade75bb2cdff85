"""Taking a table's own metadata out of its folder, for formats whose commits are files that come and go, and pointers
whose time is over.
"""

from __future__ import annotations

from typing import Protocol

from firnline.ports.stores import TaggedObject


class Retire(Protocol):
    def retire(self, key: str, data: bytes) -> bool:
        """Removes a metadata object whose bytes the caller has kept, where it still has exactly these; tells whether
        it was there.

        One that is gone, or says something else by now, is another writer's and left alone. Raises StoreError
        where nobody can tell whether it is gone.
        """
        ...

    def retires_as_read(self, folder: str) -> bool:
        """Tells whether the store of a folder compares and removes in one step. It is asked, with an object of our own
        that is gone again afterwards: one ignores the condition and removes. Raises StoreError where it does not tell.
        """
        ...

    def retire_as_read(self, key: str, seen: TaggedObject) -> bool:
        """Removes an object where it still is as it was read, in one step; tells whether it did, as far as
        the store tells it from one that was gone already.

        What a write put in the place of the object that was read is never taken. Raises StoreError, with nothing
        removed, where the store was not seen to do it in one step.
        """
        ...

    def retire_folder(self, folder: str) -> None:
        """Removes a folder in which nothing is left but folders, where the store has folders at all.

        One that is not empty stays as it is, and so does all in it.
        """
        ...
