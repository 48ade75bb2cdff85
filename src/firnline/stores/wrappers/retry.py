"""A store that asks again when asking again can help."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

from firnline.errors import (
    AlreadyExists,
    NoRoom,
    ObjectChanged,
    ObjectNotFound,
    OutcomeUnknown,
    PermanentStoreError,
    StoreError,
)
from firnline.patience import Patience
from firnline.ports.stores import ObjectMeta, ReadWrite, TaggedObject, shared

Answer = TypeVar("Answer")
_FINAL = (ObjectNotFound, AlreadyExists, ObjectChanged, PermanentStoreError)


class Retrying:
    """Hands every verb on, again where the failure may pass. Missing, taken and denied are final."""

    def __init__(self, store: ReadWrite, patience: Patience | None = None) -> None:
        self._store = store
        self._patience = patience or Patience()

    def share(self, parts: int) -> Retrying:
        return Retrying(shared(self._store, parts), self._patience)

    def get(self, key: str) -> bytes:
        return persist(lambda: self._store.get(key), self._patience)

    def head(self, key: str) -> ObjectMeta:
        return persist(lambda: self._store.head(key), self._patience)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        """Yields the listing.

        It starts again only before the first object: later, a failure is the caller's.
        """
        return persist(lambda: _begun(self._store.list(prefix)), self._patience)

    def names(self, folder: str) -> Sequence[str]:
        return persist(lambda: self._store.names(folder), self._patience)

    def links(self, folder: str) -> Sequence[str]:
        return persist(lambda: self._store.links(folder), self._patience)

    def put(self, key: str, data: bytes) -> None:
        persist(lambda: self._store.put(key, data), self._patience)

    def get_tagged(self, key: str) -> TaggedObject:
        return persist(lambda: self._store.get_tagged(key), self._patience)

    def put_if_match(self, key: str, data: bytes, seen: TaggedObject) -> None:
        """Writes the object where it is as it was read. A try whose answer got lost makes the next one fail against it:
        ObjectChanged then says no more than that the caller has to read again.
        """
        persist(lambda: self._store.put_if_match(key, data, seen), self._patience)

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Writes the object unless it exists, and finds out by reading back where an answer got lost.

        The data must be this caller's own (stamped with a write id): equal bytes are taken for its own write.
        Raises OutcomeUnknown when patience ends before the store has said which it is; NoRoom where it certainly took
        nothing.
        """
        try:
            self._store.put_if_absent(key, data)
        except _FINAL:
            raise
        except StoreError as error:
            self._find_out(key, data, error)

    def _find_out(self, key: str, data: bytes, error: StoreError) -> None:
        certain = isinstance(error, NoRoom)
        for pause in self._patience.pauses():
            time.sleep(pause)
            try:
                if self._is_mine(key, data) or self._lands(key, data):
                    return
            except AlreadyExists:
                raise
            except StoreError as another:
                error, certain = another, certain and isinstance(another, NoRoom)
        if certain:
            raise error
        hint = error.flags or "`firnline resume` settles it"
        raise OutcomeUnknown(f"whether {key!r} was written is not known: {error}", hint) from error

    def _lands(self, key: str, data: bytes) -> bool:
        """Tells whether a further attempt wrote it.

        A write of ours that was still under way may have come first.
        """
        try:
            self._store.put_if_absent(key, data)
        except AlreadyExists:
            return self._is_mine(key, data)
        return True

    def _is_mine(self, key: str, data: bytes) -> bool:
        """Tells whether the object is there with this caller's bytes.

        Raises AlreadyExists if it has others.
        """
        try:
            found = self._store.get(key)
        except ObjectNotFound:
            return False
        if found != data:
            raise AlreadyExists(f"{key!r} exists already")
        return True


def persist(call: Callable[[], Answer], patience: Patience) -> Answer:
    """Returns what a call says, made again where the failure may pass. Missing, taken and denied are final."""
    pauses = patience.pauses()
    while True:
        try:
            return call()
        except _FINAL:
            raise
        except StoreError:
            pause = next(pauses, None)
            if pause is None:
                raise
            time.sleep(pause)


def _begun(listing: Iterator[ObjectMeta]) -> Iterator[ObjectMeta]:
    """Returns the listing after its first object was asked for, so that a failure to begin shows here."""
    first = next(listing, None)
    return iter(()) if first is None else chain((first,), listing)
