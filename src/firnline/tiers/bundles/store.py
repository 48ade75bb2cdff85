"""A tier's store in which files of bundles are found by their places, as if each were an object of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from firnline.errors import ObjectNotFound
from firnline.ports.packing import FindPacked, GetPacked
from firnline.ports.stores import ObjectMeta, ReadWrite, TaggedObject, shared


@dataclass(frozen=True, slots=True)
class BundledStore:
    """Reads members of bundles, and everything else where it lies. What the index says of a file is told without any
    look at its bundle, which may have to be restored first. Listings show no members.
    """

    plain: ReadWrite
    index: FindPacked
    members: GetPacked

    def share(self, parts: int) -> BundledStore:
        return BundledStore(shared(self.plain, parts), shared(self.index, parts), shared(self.members, parts))

    def get(self, key: str) -> bytes:
        packed = self.index.find(key)
        return self.plain.get(key) if packed is None else self.members.get(packed)

    def head(self, key: str) -> ObjectMeta:
        packed = self.index.find(key)
        return self.plain.head(key) if packed is None else ObjectMeta(key, packed.size)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        return self.plain.list(prefix)

    def names(self, folder: str) -> Sequence[str]:
        return self.plain.names(folder)

    def links(self, folder: str) -> Sequence[str]:
        return self.plain.links(folder)

    def put(self, key: str, data: bytes) -> None:
        self.plain.put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> None:
        self.plain.put_if_absent(key, data)

    def get_tagged(self, key: str) -> TaggedObject:
        return self.plain.get_tagged(key)

    def put_if_match(self, key: str, data: bytes, seen: TaggedObject) -> None:
        self.plain.put_if_match(key, data, seen)


@dataclass(slots=True)
class SeenBundles:
    """The same for who asks whether files are there: only those are whose bundle is. Each is looked at once."""

    store: BundledStore
    _sizes: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    def share(self, parts: int) -> SeenBundles:
        return SeenBundles(self.store.share(parts))

    def get(self, key: str) -> bytes:
        return self.store.get(key)

    def head(self, key: str) -> ObjectMeta:
        packed = self.store.index.find(key)
        if packed is not None and packed.offset + packed.size > self._size(packed.bundle):
            raise ObjectNotFound(f"{packed.bundle!r} ends before {key!r}, which was packed there")
        return self.store.head(key)

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        return self.store.list(prefix)

    def names(self, folder: str) -> Sequence[str]:
        return self.store.names(folder)

    def links(self, folder: str) -> Sequence[str]:
        return self.store.links(folder)

    def _size(self, bundle: str) -> int:
        if bundle not in self._sizes:
            self._sizes[bundle] = self.store.plain.head(bundle).size
        return self._sizes[bundle]
