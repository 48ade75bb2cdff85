"""Writing what is read of one place to another, and seeing that it lies there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import obstore

from firnline.errors import NoSuchBucket, StoreError
from firnline.ports.catalogs import Still
from firnline.ports.stores import ObjectMeta
from firnline.stores.buckets import PAGE_RETRIES, failing
from firnline.stores.copies.checksums import (
    MD5,
    PART_BYTES,
    SHA256,
    GrowingChecksum,
    as_tagged,
    form_of,
    is_tag,
    of_parts,
    part_size,
    summed,
    summing,
    told_in_parts,
)
from firnline.stores.copies.contents import Contents, Opened
from firnline.stores.copies.requests import PacedRequests
from firnline.stores.copies.uploads import S3Uploads
from firnline.stores.keys import Key, object_name
from firnline.stores.local import LocalFiles, Piece


def usual_form(key: Key) -> str:
    """Returns the form of a checksum where the store tells none."""
    return MD5 if key.scheme == "s3" else SHA256


def another_object(target: Key, why: str) -> StoreError:
    return StoreError(f"another object lies there: {target.text!r}: {why}")


@dataclass
class Targets:
    """Writes new objects of one place. Raises AlreadyExists where a name is taken, as far as the store can tell."""

    requests: PacedRequests
    uploads: S3Uploads
    _tag_by_md5: set[str] = field(default_factory=set, init=False, repr=False)
    _tell_crc64: set[str] = field(default_factory=set, init=False, repr=False)

    def write(self, opened: Opened, target: Key, still: Still) -> str:
        """Returns the checksum of an object that was written, and was seen to be what was read."""
        of_scheme = {"file": self._file, "s3": self._s3}
        return of_scheme.get(target.scheme, self._other)(opened, target, still)

    def after_all(self, target: Key) -> ObjectMeta:
        """Returns what lies under a name that was taken when it was to be written. Raises StoreError where nothing
        does: then not the name was refused.
        """
        found = self.requests.there(target)
        if found is None:
            raise StoreError(f"{target.text!r} was not written, and nothing lies there: its source has changed")
        return found

    def _s3(self, opened: Opened, target: Key, still: Still) -> str:
        """Believes the store where its ETag is the checksum of what was read: it was made from what arrived."""
        size = opened.meta.size
        part, freezes = part_size(size), self.uploads.freezes(size)
        if size <= part:
            return self._frozen(opened, target, still) if freezes else self._small(opened, target, still)
        if opened.crc64 is not None and not freezes and target.authority in self._tell_crc64:
            return self._as_source(opened, part, target, still)
        arrived = self.uploads.put_parts(target, opened.pieces(part), size, still)
        checksum = of_parts(part, arrived.md5s)
        if opened.crc64 is not None and opened.crc64 == arrived.crc64 and is_tag(checksum, arrived.etag):
            self._tell_crc64.add(target.authority)
        return _frozen_as(checksum, arrived.etag) if freezes else self._as_told(target, checksum, arrived.etag)

    def _as_source(self, opened: Opened, part: int, target: Key, still: Still) -> str:
        """Writes an object in parts of which nothing is computed here: both stores tell one CRC64 of the whole. Only in
        a bucket that was seen to tell it, and to tag by md5.
        """
        arrived = self.uploads.put_parts(target, opened.pieces(part), opened.meta.size, still, proven=False)
        if arrived.crc64 != opened.crc64:
            raise StoreError(f"{target.text!r} is not what was read: the store tells another CRC64 of it")
        return told_in_parts(part, arrived.etag)

    def _frozen(self, opened: Opened, target: Key, still: Still) -> str:
        """Writes an object at once that nobody can read back: what arrives is compared by the server."""
        data = _joined(opened.pieces(PART_BYTES))
        return _frozen_as(summed((data,), MD5), self.uploads.put_proven(target, data, still))

    def _small(self, opened: Opened, target: Key, still: Still) -> str:
        """Writes an object at once. Where both stores tell one md5, nothing is left to compute, which would take as
        long as the rest. Only in a bucket that was seen to tag by md5: one that tags all alike tells it of anything.
        """
        data = _joined(opened.pieces(PART_BYTES))
        etag = self.uploads.put(target, data, still)
        if opened.told is not None and is_tag(opened.told, etag) and target.authority in self._tag_by_md5:
            return opened.told
        checksum = summed((data,), MD5)
        if len(data) and is_tag(checksum, etag):
            self._tag_by_md5.add(target.authority)
        return self._as_told(target, checksum, etag)

    def _as_told(self, target: Key, checksum: str, etag: str) -> str:
        return checksum if is_tag(checksum, etag) else self._read_back(target, checksum)

    def _file(self, opened: Opened, target: Key, still: Still) -> str:
        """Writes a file that is read again from the disk before it gets its name."""
        total = summing(SHA256)

        def check(unfinished: str) -> None:
            if summed(_from_disk(unfinished), SHA256) != total.checksum():
                raise StoreError(f"{target.text!r} was not written as it was read: the disk returns other bytes")
            still()

        pieces = _noted(opened.pieces(PART_BYTES), total)
        self.requests.write(target, lambda: LocalFiles().put_pieces_if_absent(target, pieces, check), still)
        return total.checksum()

    def _other(self, opened: Opened, target: Key, still: Still) -> str:
        """Writes an object of any other store. A large one cannot be written on a condition there: its name was looked
        at before, and two that write it at once write the same bytes (as `uploads` has it).
        """
        total = summing(SHA256)
        pieces = _noted(opened.pieces(PART_BYTES), total)
        if opened.meta.size <= PART_BYTES:
            put = partial(self.requests.buckets.put_if_absent, target, bytes(_joined(pieces)))
            self.requests.write(target, put, still)
        else:
            self.requests.write(target, lambda: self._in_pieces(target, pieces, still), still, again=False)
        return self._read_back(target, total.checksum())

    def _in_pieces(self, target: Key, pieces: Iterator[Piece], still: Still) -> None:
        """Writes an object a piece at a time. Nothing shows of it before it is closed, and it is not where a piece is
        missing. A piece cannot be sent again by us, so obstore does.
        """
        with failing(target, missing=NoSuchBucket):
            store = self.requests.buckets.opened(target, PAGE_RETRIES)
            writer = obstore.open_writer(store, object_name(target), buffer_size=PART_BYTES, max_concurrency=1)
            for piece in pieces:
                still()
                writer.write(piece)
            still()
            writer.close()

    def _read_back(self, target: Key, checksum: str) -> str:
        if Contents(self.requests).settled(target, form_of(checksum)) != checksum:
            raise StoreError(f"{target.text!r} is not what was read: the store returns other bytes")
        return checksum


def _frozen_as(checksum: str, etag: str) -> str:
    """Returns the checksum of an object that cannot be read back: every request that brought its bytes had their md5,
    and the server refuses what arrives otherwise. Where its tag is no md5 (SSE-KMS), the tag itself is all that tells
    later whether it is the same.
    """
    return checksum if is_tag(checksum, etag) else as_tagged(etag)


def _noted(pieces: Iterator[Piece], total: GrowingChecksum) -> Iterator[Piece]:
    for piece in pieces:
        total.update(piece)
        yield piece


def _joined(pieces: Iterator[Piece]) -> Piece:
    """Returns all pieces of a small object, which is mostly one."""
    found = list(pieces)
    return found[0] if len(found) == 1 else b"".join(found)


def _from_disk(path: str) -> Iterator[bytes]:
    """Yields what is in a synced file: from the disk itself, where the system forgets on demand what it wrote."""
    with open(path, "rb") as file:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while piece := file.read(PART_BYTES):
            yield piece
