"""Removing metadata objects whose bytes are kept."""

from __future__ import annotations

from collections.abc import Mapping

from firnline.errors import ObjectNotFound, StoreError
from firnline.ports.delete import Doomed, Fate
from firnline.ports.stores import Read
from firnline.stores.delete import ObjectDelete
from firnline.stores.folders import LocalFolders


class ObjectRetire:
    """Reads an object and deletes it if it is the one that was meant: by its tag, so that another stays which somebody
    wrote under the same name meanwhile, as after a rollback.
    """

    def __init__(self, store: Read, properties: Mapping[str, str] | None = None) -> None:
        self._store = store
        self._delete = ObjectDelete(properties)
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
