"""One store for every location: local files, memory and buckets, told apart by the key itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from firnline.ports.stores import ObjectMeta, TaggedObject
from firnline.stores.buckets import Buckets
from firnline.stores.keys import Key, folder_key, object_key
from firnline.stores.local import LocalFiles


class ObjectStores:
    """Reads and writes objects wherever their location says. Cannot delete.

    Safe to share between threads; a pickled copy carries its settings and opens its own connections. What
    is in `memory://` belongs to one process and does not travel. `properties` are a catalog's, by PyIceberg's names.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self._local = LocalFiles()
        self._buckets = Buckets(properties)

    def get(self, key: str) -> bytes:
        where = object_key(key)
        return self._at(where).get(where)

    def head(self, key: str) -> ObjectMeta:
        where = object_key(key)
        return self._at(where).head(where)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        where = folder_key(prefix)
        return self._at(where).list(where)

    def names(self, folder: str) -> Sequence[str]:
        where = folder_key(folder)
        return self._at(where).names(where)

    def links(self, folder: str) -> Sequence[str]:
        where = folder_key(folder)
        return self._at(where).links(where)

    def put(self, key: str, data: bytes) -> None:
        where = object_key(key)
        self._at(where).put(where, data)

    def put_if_absent(self, key: str, data: bytes) -> None:
        where = object_key(key)
        self._at(where).put_if_absent(where, data)

    def get_tagged(self, key: str) -> TaggedObject:
        where = object_key(key)
        return self._at(where).get_tagged(where)

    def put_if_match(self, key: str, data: bytes, seen: TaggedObject) -> None:
        where = object_key(key)
        self._at(where).put_if_match(where, data, seen)

    def _at(self, where: Key) -> LocalFiles | Buckets:
        return self._local if where.scheme == "file" else self._buckets
