"""Deleting the objects that a written list names, one by one. Only purge code is given these."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from firnline.errors import ObjectNotFound, StoreError
from firnline.ports.delete import DeleteOutcome, Fate
from firnline.stores.buckets import Buckets
from firnline.stores.keys import Key, object_key


class ObjectDelete:
    """Deletes objects wherever their location says.

    Folders stay, even empty ones: a writer may be about to use them.
    """

    def __init__(self, options: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._buckets = Buckets(options or {})

    def delete(self, keys: Sequence[str]) -> list[DeleteOutcome]:
        return [self._one(key) for key in keys]

    def _one(self, text: str) -> DeleteOutcome:
        try:
            key = object_key(text)
            if key.scheme == "file":
                _unlink(key)
            else:
                self._buckets.delete(key)
        except ObjectNotFound:
            return DeleteOutcome(text, Fate.MISSING)
        except StoreError as error:
            return DeleteOutcome(text, Fate.FAILED, str(error))
        return DeleteOutcome(text, Fate.DELETED)


class LocalDelete(ObjectDelete):
    """Deletes local files and nothing else: every other location fails."""

    def _one(self, text: str) -> DeleteOutcome:
        try:
            if object_key(text).scheme != "file":
                return DeleteOutcome(text, Fate.FAILED, f"{text!r} is not a local file")
        except StoreError as error:
            return DeleteOutcome(text, Fate.FAILED, str(error))
        return super()._one(text)


def _unlink(key: Key) -> None:
    try:
        if os.path.isdir(key.path):  # unlink refuses a folder by itself, but not a link to one
            raise StoreError(f"{key.text!r} is a folder")
        os.unlink(key.path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ObjectNotFound(f"no object {key.text!r}") from error
    except OSError as error:
        raise StoreError(f"cannot delete {key.text!r}: {error.strerror}") from error
