"""Copies from one store to another, seen to be whole before they count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from firnline.errors import AlreadyExists, StoreError
from firnline.patience import Patience
from firnline.ports.catalogs import Still, always
from firnline.ports.copying import CopyFate, CopyJob, CopyOutcome
from firnline.ports.stores import ObjectMeta
from firnline.stores.copies.checksums import MD5, PART_BYTES, form_of, is_tag, md5_tag, part_of
from firnline.stores.copies.contents import Contents, refuse_other_size
from firnline.stores.copies.requests import one_by_one
from firnline.stores.copies.route import COPY_PATIENCE, Route, route
from firnline.stores.copies.targets import another_object, usual_form
from firnline.stores.copies.uploads import LARGEST_COPY, SMALLEST_PART
from firnline.stores.failures import HOPELESS
from firnline.stores.keys import Key, object_key
from firnline.stores.settings import s3_settings
from firnline.stores.throttle import Throttle

_AT_ONCE_BYTES = 128 << 20
"""What a server copies well within the time that a request may take."""


class ObjectCopy:
    """Copies objects from wherever their location says to wherever it says, at the pace of both stores.

    `source` and `target` are the settings of the two stores, by PyIceberg's names. Where both are one S3 that is
    reached in one way, the server copies by itself. `storage_class` is S3's, for objects that are large enough for one;
    other stores have none. A pickled copy has a pace of its own: `share` it.
    """

    def __init__(
        self,
        source: Mapping[str, str] | None = None,
        target: Mapping[str, str] | None = None,
        *,
        storage_class: str | None = None,
        source_throttle: Throttle | None = None,
        target_throttle: Throttle | None = None,
        patience: Patience = COPY_PATIENCE,
    ) -> None:
        self._route = route(source, target, storage_class, (source_throttle, target_throttle), patience)
        self._source, self._targets = self._route.sources(), self._route.targets()
        self._there = self._targets.requests
        self._target = Contents(self._there)

    def __reduce__(self) -> tuple[Any, ...]:
        return _copying, (self._route,)

    def share(self, parts: int) -> ObjectCopy:
        return _copying(self._route.share(parts))

    def copy(self, jobs: Sequence[CopyJob], still: Still = always) -> list[CopyOutcome]:
        return one_by_one(jobs, self._outcome, still)

    def _outcome(self, job: CopyJob, still: Still) -> CopyOutcome:
        try:
            return self._one(job, object_key(job.source), object_key(job.target), still)
        except HOPELESS:
            raise
        except StoreError as error:
            return CopyOutcome(job.target, CopyFate.FAILED, error=str(error))

    def _one(self, job: CopyJob, source: Key, target: Key, still: Still) -> CopyOutcome:
        """Looks first: a run that goes on finds most of its copies there, and must not send them all again."""
        found = self._there.there(target)
        if found is None:
            try:
                size, checksum = self._written(job, source, target, still)
                return CopyOutcome(job.target, CopyFate.COPIED, size, checksum)
            except AlreadyExists:  # another writer was quicker; or this very write, whose answer got lost
                found = self._targets.after_all(target)
        checksum = self._same(job, source, target, found)
        return CopyOutcome(job.target, CopyFate.PRESENT, found.size, checksum)

    def _same(self, job: CopyJob, source: Key, target: Key, found: ObjectMeta) -> str:
        """Returns the checksum of both, as the stores tell it or as their bytes have it. Raises StoreError where
        another object lies there.
        """
        meta = self._source.requests.head(source)
        refuse_other_size(meta, job.size)
        if meta.size != found.size:
            raise another_object(target, f"it has {found.size:,} bytes, and its source {meta.size:,}")
        told, claimed = self._source.claimed(source, meta), self._target.claimed(target, found)
        if told is not None and told == claimed:
            return told
        if claimed is not None and self._tell_one_crc64(source, meta, target, found):
            return claimed
        form = usual_form(target) if claimed is None else form_of(claimed)
        checksum = self._source.checksum(source, meta, form)
        if checksum != claimed and checksum != self._target.settled(target, form):
            raise another_object(target, "its bytes are not those of its source")
        return checksum

    def _written(self, job: CopyJob, source: Key, target: Key, still: Still) -> tuple[int, str]:
        """Returns the size and checksum of what was written and seen to be the source's bytes."""
        if source.scheme == target.scheme == "s3" and self._is_one_s3:
            return self._by_server(job, source, target, still)
        opened = self._source.open(source, job.size)
        refuse_other_size(opened.meta, job.size)
        if target.scheme == "s3" and opened.meta.size > PART_BYTES:
            opened = opened._replace(crc64=self._source.crc64(source, opened.meta))
        return opened.meta.size, self._targets.write(opened, target, still)

    def _tell_one_crc64(self, source: Key, meta: ObjectMeta, target: Key, found: ObjectMeta) -> bool:
        told = self._source.crc64(source, meta)
        return told is not None and told == self._target.crc64(target, found)

    @cached_property
    def _is_one_s3(self) -> bool:
        return s3_settings(self._route.source) == s3_settings(self._route.target)

    def _by_server(self, job: CopyJob, source: Key, target: Key, still: Still) -> tuple[int, str]:
        """Lets the server copy. An object that was written in parts is copied in the same ones where the store tells no
        CRC64: its ETag is made of theirs, and only the same tag says then that the bytes are the same, without reading.
        """
        meta = self._source.requests.head(source)
        refuse_other_size(meta, job.size)
        if _is_in_parts(meta) and meta.size <= _AT_ONCE_BYTES:
            crc64 = self._source.crc64(source, meta)
            if crc64 is not None:
                return meta.size, self._at_once(job, source, meta, crc64, target, still)
        told = self._source.claimed(source, meta)
        part = part_of(told) or (LARGEST_COPY if meta.size > LARGEST_COPY else None)
        if part is None or (part < SMALLEST_PART and part < meta.size):
            arrived = self._targets.uploads.copy(source, meta, target, still)
        else:
            arrived = self._targets.uploads.copy_parts(source, meta, part, target, still)
        if told is not None and is_tag(told, arrived.etag):
            return meta.size, told
        return meta.size, self._same(job, source, target, self._targets.after_all(target))

    def _at_once(self, job: CopyJob, source: Key, meta: ObjectMeta, crc64: str, target: Key, still: Still) -> str:
        """Lets the server copy an object in one request that was written in parts. Its ETag is another one then, and
        the same CRC64 says that the bytes are the same.
        """
        arrived = self._targets.uploads.copy(source, meta, target, still, summed=True)
        tag = md5_tag(arrived.etag)
        if arrived.crc64 == crc64 and tag is not None and tag.parts is None:
            return f"{MD5}:{tag.text}"
        return self._same(job, source, target, self._targets.after_all(target))


def _copying(route: Route) -> ObjectCopy:
    return ObjectCopy(**route.named())


def _is_in_parts(meta: ObjectMeta) -> bool:
    tag = md5_tag(meta.etag)
    return tag is not None and tag.parts is not None
