"""A store that is read no faster than it may be asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from firnline.errors import ObjectNotFound
from firnline.ports.stores import ObjectMeta, ReadWrite, TaggedObject, shared
from firnline.stores.throttle import Lane, Throttle


class Paced:
    """Hands every verb on; what reads waits for its turn and its time first. Writes are few: they go at once.

    `waits`: False for a lease. Renewing one reads too, and goes at once; all that comes after it waits the longer.
    """

    def __init__(self, store: ReadWrite, throttle: Throttle, *, waits: bool = True) -> None:
        self._store = store
        self._throttle = throttle
        self._waits = waits

    def share(self, parts: int) -> Paced:
        return Paced(shared(self._store, parts), self._throttle.share(parts), waits=self._waits)

    def get(self, key: str) -> bytes:
        with self._asking(self._beside(key)):
            return self._store.get(key)

    def head(self, key: str) -> ObjectMeta:
        lane = self._beside(key)
        with self._asking(lane):
            try:
                return self._store.head(key)
            except ObjectNotFound:
                self._throttle.reserve(lane, 1)  # a server was asked twice: is there no object, or no bucket?
                raise

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        lane = self._throttle.reads(prefix)
        if not self._waits:
            self._throttle.reserve(lane, 1)
            return self._store.list(prefix)
        return self._throttle.listing(lane, self._store.list(prefix), lambda found: 1)

    def names(self, folder: str) -> Sequence[str]:
        with self._asking(self._throttle.reads(folder)):
            return self._store.names(folder)

    def links(self, folder: str) -> Sequence[str]:
        with self._asking(self._throttle.reads(folder)):
            return self._store.links(folder)

    def put(self, key: str, data: bytes) -> None:
        self._store.put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> None:
        self._store.put_if_absent(key, data)

    def get_tagged(self, key: str) -> TaggedObject:
        with self._asking(self._beside(key)):
            return self._store.get_tagged(key)

    def put_if_match(self, key: str, data: bytes, seen: TaggedObject) -> None:
        self._store.put_if_match(key, data, seen)

    @contextmanager
    def _asking(self, lane: Lane) -> Iterator[None]:
        if not self._waits:
            self._throttle.reserve(lane, 1)
            yield
            return
        with self._throttle.asking(lane):
            yield

    def _beside(self, key: str) -> Lane:
        return self._throttle.reads(key.rpartition("/")[0])
