"""A store that is read no faster than it may be asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from firnline.ports.stores import ObjectMeta, ReadWrite, TaggedObject, shared
from firnline.stores.throttle import Lane, Throttle


class Paced:
    """Hands every verb on; what reads waits for its turn and its time first. Writes are few: they go at once. Nothing
    of a lease may come through here, since renewing one reads too.
    """

    def __init__(self, store: ReadWrite, throttle: Throttle) -> None:
        self._store = store
        self._throttle = throttle

    def share(self, parts: int) -> Paced:
        return Paced(shared(self._store, parts), self._throttle.share(parts))

    def get(self, key: str) -> bytes:
        with self._throttle.asking(self._beside(key)):
            return self._store.get(key)

    def head(self, key: str) -> ObjectMeta:
        with self._throttle.asking(self._beside(key)):
            return self._store.head(key)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        return self._throttle.listing(self._throttle.reads(prefix), self._store.list(prefix), lambda found: 1)

    def names(self, folder: str) -> Sequence[str]:
        with self._throttle.asking(self._throttle.reads(folder)):
            return self._store.names(folder)

    def links(self, folder: str) -> Sequence[str]:
        with self._throttle.asking(self._throttle.reads(folder)):
            return self._store.links(folder)

    def put(self, key: str, data: bytes) -> None:
        self._store.put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> None:
        self._store.put_if_absent(key, data)

    def get_tagged(self, key: str) -> TaggedObject:
        with self._throttle.asking(self._beside(key)):
            return self._store.get_tagged(key)

    def put_if_match(self, key: str, data: bytes, seen: TaggedObject) -> None:
        self._store.put_if_match(key, data, seen)

    def _beside(self, key: str) -> Lane:
        return self._throttle.reads(key.rpartition("/")[0])
