"""Reading and writing objects. Every key is a full location (`file:///…`, `s3://bucket/…`, or a bare local path)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self, TypeVar, runtime_checkable

from firnline.errors import ObjectNotFound

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """What a store says of an object. `modified_ms` is the store's clock; None where it does not tell."""

    key: str
    size: int
    modified_ms: int | None = None
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class TaggedObject:
    """An object as it was read, with what its store tells it apart by from any other of the same name."""

    data: bytes = field(repr=False)
    tag: str | None = None
    generation: str | None = None


class Get(Protocol):
    def get(self, key: str) -> bytes:
        """Returns the whole object. Raises ObjectNotFound, or StoreError for any other failure."""
        ...


class Head(Protocol):
    def head(self, key: str) -> ObjectMeta:
        """Returns what the store says of the object. Raises ObjectNotFound."""
        ...


class List(Protocol):
    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        """Yields every object under the folder `prefix`, recursively, in no promised order.

        `…/t` never yields `…/t2/x`. A folder that does not exist yields nothing. A failure raises StoreError
        and is never an early end: a short listing would make live files look like garbage.
        """
        ...


class Names(Protocol):
    def names(self, folder: str) -> Sequence[str]:
        """Returns the names of the objects directly in a folder, in no promised order; of what lies deeper, nothing.

        Costs less than `list` where a store is asked for each object's size. Fails as `list` does.
        """
        ...


class Links(Protocol):
    def links(self, folder: str) -> Sequence[str]:
        """Returns the links anywhere below a folder, and the folder itself where it is one, each by its full name.

        No listing shows what is behind one that leads to a folder, or to nothing at this moment; a file that one leads
        to is also another's, who may remove it. Fails as `list` does.
        """
        ...


class Put(Protocol):
    def put(self, key: str, data: bytes) -> None:
        """Writes the object whole: a reader sees all of it or none."""
        ...


class PutIfAbsent(Protocol):
    def put_if_absent(self, key: str, data: bytes) -> None:
        """Writes the object, or raises AlreadyExists. Of racing callers exactly one returns.

        A caller whose answer got lost may see AlreadyExists against its own write: stamp a write id and read back.
        """
        ...


class PutIfMatch(Protocol):
    """Replacing an object only as it was read. Writers must make sure that no two versions of it are the same bytes:
    a store may tell versions apart by these alone.
    """

    def get_tagged(self, key: str) -> TaggedObject:
        """Returns the whole object and its tag. Raises ObjectNotFound."""
        ...

    def put_if_match(self, key: str, data: bytes, seen: TaggedObject) -> None:
        """Writes the object where it still is as it was read, or raises ObjectChanged. Of racing callers that read the
        same, exactly one returns.

        A caller whose answer got lost may see ObjectChanged against its own write: read back.
        """
        ...


class Read(Get, Head, List, Names, Links, Protocol):
    """Everything that planning may do."""


class Checkpoints(Get, Head, Names, Protocol):
    """The store that checkpoints lie in. Reads alone, and lists folder by folder: one may hold millions of objects of
    a query's state.
    """

    def folders(self, folder: str) -> Sequence[str]:
        """Returns the names of the folders directly in a folder; none of one that does not exist. Fails as `names`."""
        ...


class ReadWrite(Read, Put, PutIfAbsent, PutIfMatch, Protocol):
    """What records and commits are made with. Still cannot delete."""


class Budget(Protocol):
    """Keys per second in each lane, for everybody who shares this budget."""

    @property
    def part(self) -> float:
        """The most of a lane's rate that this holder may ever send: 1 is all of it."""
        ...

    def reserve(self, lane: str, keys: int, rate: float) -> float:
        """Takes `keys` out of the budget of a lane, whose holders together send no more than `rate` a second. Returns
        how many seconds to wait before they are sent.
        """
        ...

    def share(self, parts: int) -> Budget:
        """Returns the budget of one of `parts` holders that work at once; picklable."""
        ...


T = TypeVar("T")


@runtime_checkable
class Shared(Protocol):
    """What asks a store, or holds what does: several of it may work at once and keep to one pace."""

    def share(self, parts: int) -> Self:
        """Returns the same for one of `parts` that work at once: each asks for its part of what all may; picklable."""
        ...


def shared(what: T, parts: int) -> T:
    """Returns the same for one of `parts` that work at once; as it is where it asks no store."""
    return what.share(parts) if isinstance(what, Shared) else what


def is_there(store: Head, key: str) -> bool:
    """Tells whether there is such an object. Raises StoreError where the store cannot tell."""
    try:
        store.head(key)
    except ObjectNotFound:
        return False
    return True


class RealNames(Protocol):
    """Makes real identities of identities. Picklable, because executors compare names too."""

    def __call__(self, name: str) -> str:
        """Returns the real identity of a file or, with a slash at its end, of a folder."""
        ...

    def entry(self, name: str) -> str:
        """Returns the real identity of what is to be removed: by the folder that it really lies in, and as it is called
        there. No link is ever removed.
        """
        ...

    def column(self, names: pa.Array) -> pa.Array:
        """Returns the same of many; the very same array where every name is real already."""
        ...

    def has_links(self, folder: str) -> bool:
        """Tells whether any file in a folder, whose name ends with a slash, may be a link to another one."""
        ...

    def forget(self) -> None:
        """Drops what was found: links change, and what is decided from now on is decided by those of now."""
        ...


class AsCalled:
    """Takes every name for the real one: for stores that have neither links nor mounts."""

    def __call__(self, name: str) -> str:
        return name

    def entry(self, name: str) -> str:
        return name

    def column(self, names: pa.Array) -> pa.Array:
        return names

    def has_links(self, folder: str) -> bool:
        return False

    def forget(self) -> None:
        pass


AS_CALLED = AsCalled()
