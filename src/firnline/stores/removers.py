"""Removing what is not a table's data: firnline's own objects, metadata whose bytes are kept, and folders in which
nothing is left. Every folder that firnline removes goes here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from firnline.errors import ObjectNotFound, StoreError
from firnline.ports.delete import Doomed, Fate
from firnline.ports.discard import OwnKey
from firnline.ports.stores import Read
from firnline.stores.delete import ObjectDelete
from firnline.stores.keys import folder_key
from firnline.stores.throttle import Throttle


class LocalFolders:
    """Removes folders of local files. Object stores have none: what looks like one goes with its last object."""

    def remove_empty(self, folder: str) -> bool:
        key = folder_key(folder)
        return key.scheme == "file" and _removed(key.path)

    def remove_hollow(self, folder: str) -> None:
        """Removes a folder in which nothing is left but folders, from the innermost out; any that holds a file stays,
        and so do those around it.
        """
        key = folder_key(folder)
        if key.scheme == "file":
            for inner, _, _ in os.walk(key.path, topdown=False):
                _removed(inner)


def _removed(path: str) -> bool:
    try:
        os.rmdir(path)  # fails where anything is in it, so that a file which arrives meanwhile is safe
    except OSError:
        return False  # something is in it, or it is gone, or not ours to remove: in each case it stays as it is
    return True


class ObjectRetire:
    """Reads an object and deletes it if it is the one that was meant: by its tag, so that another stays which a writer
    wrote under the same name meanwhile, as after a rollback.
    """

    def __init__(
        self, store: Read, properties: Mapping[str, str] | None = None, throttle: Throttle | None = None
    ) -> None:
        self._store = store
        self._delete = ObjectDelete(properties, throttle=throttle)
        self._folders = LocalFolders()

    def retire(self, key: str, data: bytes) -> bool:
        try:
            tag = self._store.head(key).etag  # before it is read: whatever comes after that has another one
            if self._store.get(key) != data:
                return False
        except ObjectNotFound:
            return False
        (outcome,) = self._delete.delete([Doomed(key, tag)])
        if outcome.fate is Fate.FAILED:
            raise StoreError(f"cannot remove {key}: {outcome.error}", hint="`firnline resume` goes on with it")
        return outcome.fate is Fate.DELETED

    def retire_folder(self, folder: str) -> None:
        self._folders.remove_hollow(folder)


class OwnDiscard:
    """Discards own objects wherever they lie; outcomes do not matter."""

    def __init__(self, properties: Mapping[str, str] | None = None, throttle: Throttle | None = None) -> None:
        self._delete = ObjectDelete(properties, throttle=throttle)

    def discard(self, keys: Sequence[OwnKey]) -> None:
        with suppress(StoreError):
            self._delete.delete([Doomed(str(key)) for key in keys])
