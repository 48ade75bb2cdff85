"""Removing what is not a table's data: firnline's own objects, metadata whose bytes are kept, and folders in which
nothing is left. Every folder that firnline removes goes here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from firnline.errors import ObjectChanged, ObjectNotFound, PermanentStoreError, StoreError
from firnline.ports.discard import OwnKey
from firnline.ports.stores import Read, TaggedObject
from firnline.stores.keys import Key, folder_key, object_key
from firnline.stores.local import LocalFiles, alone_in
from firnline.stores.throttle import Throttle

if TYPE_CHECKING:
    from firnline.ports.delete import DeleteOutcome
    from firnline.stores.delete import ObjectDelete


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
        from firnline.stores.delete import ObjectDelete

        self._store = store
        self._properties = properties
        self._delete = ObjectDelete(properties, throttle=throttle)
        self._delete_as_read = ObjectDelete(properties, throttle=throttle, conditional=True)
        self._honours: dict[tuple[str, str], bool] = {}
        self._folders = LocalFolders()

    def retire(self, key: str, data: bytes) -> bool:
        from firnline.ports.delete import Doomed

        try:
            tag = self._store.head(key).etag  # before it is read: whatever comes after that has another one
            if self._store.get(key) != data:
                return False
        except ObjectNotFound:
            return False
        (outcome,) = self._delete.delete([Doomed(key, tag)])
        return _told(outcome)

    def retires_as_read(self, folder: str) -> bool:
        from firnline.stores.probe import StoreProbe

        where = folder_key(folder)
        if where.scheme == "file":
            return True
        if where.home not in self._honours:
            self._honours[where.home] = bool(StoreProbe(self._properties).conditional_delete(folder))
        return self._honours[where.home]

    def retire_as_read(self, key: str, seen: TaggedObject) -> bool:
        from firnline.ports.delete import Doomed

        where = object_key(key)
        if where.scheme == "file":
            return _unlinked(where, seen)
        if not self._honours.get(where.home) or seen.tag is None:
            raise PermanentStoreError(f"the store would remove {key}, but not only as it was read")
        (outcome,) = self._delete_as_read.delete([Doomed(key, seen.tag)])
        return _told(outcome)

    def retire_folder(self, folder: str) -> None:
        self._folders.remove_hollow(folder)


def _told(outcome: DeleteOutcome) -> bool:
    from firnline.ports.delete import Fate

    if outcome.fate is Fate.FAILED:
        raise StoreError(f"cannot remove {outcome.key}: {outcome.error}", hint="`firnline resume` goes on with it")
    return outcome.fate is Fate.DELETED


def _unlinked(key: Key, seen: TaggedObject) -> bool:
    """Removes a local file if its bytes are those that were read; tells whether it did. Writers that replace what they
    read lock the folder, so none comes between; one that creates the file finds its name taken until it is gone.
    """
    try:
        with alone_in(os.path.dirname(key.path), key.text):
            if LocalFiles().get(key) != seen.data:
                return False
            os.unlink(key.path)
    except (ObjectChanged, ObjectNotFound, FileNotFoundError):
        return False
    except OSError as error:
        raise StoreError(f"cannot remove {key.text!r}: {error.strerror}") from error
    return True


class OwnDiscard:
    """Discards own objects wherever they lie; outcomes do not matter. What can delete is made when there is one: a
    table that is only looked at has none.
    """

    def __init__(self, properties: Mapping[str, str] | None = None, throttle: Throttle | None = None) -> None:
        self._properties, self._throttle = properties, throttle

    @cached_property
    def _delete(self) -> ObjectDelete:
        from firnline.stores.delete import ObjectDelete

        return ObjectDelete(self._properties, throttle=self._throttle)

    def discard(self, keys: Sequence[OwnKey]) -> None:
        from firnline.ports.delete import Doomed

        with suppress(StoreError):
            self._delete.delete([Doomed(str(key)) for key in keys])
