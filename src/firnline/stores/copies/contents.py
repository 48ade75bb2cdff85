"""What lies in a place, read a piece at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import obstore

from firnline.errors import ObjectChanged, StoreError
from firnline.ports.stores import ObjectMeta
from firnline.stores.copies.checksums import MD5, PART_BYTES, in_parts, md5_tag, of_whole, summed
from firnline.stores.copies.requests import PacedRequests, refusing
from firnline.stores.failures import HOPELESS
from firnline.stores.keys import Key, object_name
from firnline.stores.local import LocalFiles, Piece
from firnline.stores.s3.requests import WireRequest


class Opened(NamedTuple):
    """An object that is about to be read: its size and tag, and its bytes in pieces of a size. `told` is the checksum
    of the whole that the store tells without another request, `crc64` that of a large one; None where it does not.
    """

    meta: ObjectMeta
    pieces: Callable[[int], Iterator[Piece]]
    told: str | None = None
    crc64: str | None = None


@dataclass
class Contents:
    """Reads objects of one place, and never holds more than a piece of one.

    A bucket is asked for each piece by itself. One long answer would run into the time that a request may take, and
    could not be asked for again from where it broke off. Every piece is asked for by the tag of the first: an object
    that is written anew meanwhile is told, where the store knows such a condition, and not mixed.
    """

    requests: PacedRequests

    def open(self, key: Key, likely: int | None) -> Opened:
        """Returns an object. One that is `likely` small comes with its bytes in the first answer."""
        if key.scheme == "file":
            return self.opened(key, self.requests.head(key))
        if likely is None or likely > PART_BYTES:
            return self.opened(key, self.requests.head(key))
        meta, data = self.requests.read(key, lambda: self._whole(key))
        if data is None:
            return self.opened(key, meta)
        return self._counted(meta, lambda piece: iter((data,)))._replace(told=_told(key, meta))

    def opened(self, key: Key, meta: ObjectMeta) -> Opened:
        """Returns an object of which the store has told already."""
        if key.scheme == "file":
            return self._counted(meta, lambda piece: self._of_file(key, piece))
        return self.span(key, meta, 0, meta.size)

    def span(self, key: Key, meta: ObjectMeta, start: int, size: int) -> Opened:
        """Returns so many bytes of an object of which the store has told already."""
        part, end = replace(meta, size=size), start + size
        if key.scheme == "file":
            return self._counted(part, lambda piece: self._of_file(key, piece, start, end))
        return self._counted(part, lambda piece: self._ranges(key, meta.etag, range(start, end, piece)))

    def checksum(self, key: Key, meta: ObjectMeta, form: str) -> str:
        """Returns the checksum of the bytes themselves."""
        return summed(self.opened(key, meta).pieces(PART_BYTES), form)

    def settled(self, key: Key, form: str) -> str:
        """Returns the checksum of the bytes of a target, begun anew where it was replaced meanwhile: by another writer
        of the same copy, in a store that knows no condition for that.
        """
        for pause in self.requests.patience.pauses():
            try:
                return self.checksum(key, self.requests.head(key), form)
            except ObjectChanged:
                time.sleep(pause)
        return self.checksum(key, self.requests.head(key), form)

    def claimed(self, key: Key, meta: ObjectMeta) -> str | None:
        """Returns the checksum that the store tells of an object; None where it tells none. No proof: an ETag may look
        like an md5 and be none.
        """
        tag = md5_tag(meta.etag) if key.scheme == "s3" else None
        if tag is None or tag.parts is None:
            return _told(key, meta)
        part = self._part(key, meta.size, tag.parts)
        return None if part is None else f"{in_parts(part)}:{tag.text}"

    def crc64(self, key: Key, meta: ObjectMeta) -> str | None:
        """Returns the CRC64 of all bytes of an object of which the store has told already; None where it tells none, or
        of another one meanwhile.
        """
        said = self._said(key, headers={"x-amz-checksum-mode": "ENABLED"}) if key.scheme == "s3" else None
        if said is None or meta.etag is None or said.get("ETag") != meta.etag:
            return None
        return of_whole(said.get("x-amz-checksum-crc64nvme"), said.get("x-amz-checksum-type"))

    def _part(self, key: Key, size: int, parts: int) -> int | None:
        """Returns in parts of how many bytes an object was written; None where they differ, or nobody tells."""
        said = self._said(key, query="partNumber=1") or {}
        first, count = int(said.get("Content-Length", 0)), int(said.get("x-amz-mp-parts-count", 0))
        return first if count == parts and first > 0 and -(-size // first) == parts else None

    def _said(self, key: Key, **more: Any) -> Mapping[str, str] | None:
        """Returns the headers of an answer that only some stores give; None where this one does not."""
        asked = WireRequest("HeadObject", "HEAD", key.authority, object_name(key), **more)
        try:
            return self.requests.read(key, lambda: self._headers(key, asked))
        except HOPELESS:
            raise
        except StoreError:
            return None

    def _headers(self, key: Key, asked: WireRequest) -> Mapping[str, str]:
        with refusing(key):
            return self.requests.buckets.s3().wire.send(asked).headers

    def _whole(self, key: Key) -> tuple[ObjectMeta, memoryview | None]:
        """Returns an object with its bytes; without them if it is larger than what a thread may hold."""
        buckets = self.requests.buckets
        with buckets.asking(key):
            found = obstore.get(buckets.opened(key), object_name(key))
            meta = ObjectMeta(key.text, found.meta["size"], None, found.meta["e_tag"])
            return meta, memoryview(found.bytes()) if meta.size <= PART_BYTES else None

    def _ranges(self, key: Key, etag: str | None, starts: range) -> Iterator[Piece]:
        for start in starts:
            end = min(start + starts.step, starts.stop)
            yield self.requests.read(key, partial(self._range, key, etag, start, end))

    def _range(self, key: Key, etag: str | None, start: int, end: int) -> memoryview:
        buckets = self.requests.buckets
        options: Any = {"range": (start, end)} | ({} if etag is None else {"if_match": etag})
        with buckets.asking(key):
            return memoryview(obstore.get(buckets.opened(key), object_name(key), options=options).bytes())

    def _of_file(self, key: Key, piece: int, start: int = 0, end: int | None = None) -> Iterator[Piece]:
        pieces = LocalFiles().pieces(key, piece, start, end)
        while (found := self.requests.read(key, lambda: next(pieces, None))) is not None:
            yield found

    def _counted(self, meta: ObjectMeta, pieces: Callable[[int], Iterable[Piece]]) -> Opened:
        def all_of_it(piece: int) -> Iterator[Piece]:
            read = 0
            for each in pieces(piece):
                read += len(each)
                yield each
            if read != meta.size:
                raise StoreError(f"{meta.key!r} has {meta.size:,} bytes, and {read:,} of it were read")

        return Opened(meta, all_of_it)


def _told(key: Key, meta: ObjectMeta) -> str | None:
    """Returns the checksum of an object that was written at once, as its tag tells it."""
    tag = md5_tag(meta.etag) if key.scheme == "s3" else None
    return f"{MD5}:{tag.text}" if tag is not None and tag.parts is None else None


def refuse_other_size(meta: ObjectMeta, size: int | None) -> None:
    """Raises ObjectChanged where an object has not the size that its table says."""
    if size is not None and meta.size != size:
        raise ObjectChanged(f"{meta.key!r} has {meta.size:,} bytes, and its table says {size:,}")
