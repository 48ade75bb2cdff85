"""A store that can only be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from firnline.ports.stores import ObjectMeta, Read, shared


class ReadOnly:
    """Hands on the reading verbs.

    It has no others, so code that is given one cannot write by any path.
    """

    def __init__(self, store: Read) -> None:
        self._store = store

    def share(self, parts: int) -> ReadOnly:
        return ReadOnly(shared(self._store, parts))

    def get(self, key: str) -> bytes:
        return self._store.get(key)

    def head(self, key: str) -> ObjectMeta:
        return self._store.head(key)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        return self._store.list(prefix)

    def names(self, folder: str) -> Sequence[str]:
        return self._store.names(folder)

    def links(self, folder: str) -> Sequence[str]:
        return self._store.links(folder)
