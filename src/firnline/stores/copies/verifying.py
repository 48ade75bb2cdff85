"""Looking at copies again, before what they were made from may go."""

from __future__ import annotations

from collections.abc import Sequence

from firnline.errors import StoreError
from firnline.ports.copying import CopyFate, CopyOutcome, Stored
from firnline.stores.copies.checksums import ETAG, form_of, is_tag
from firnline.stores.copies.contents import Contents
from firnline.stores.copies.route import OneStore
from firnline.stores.failures import HOPELESS
from firnline.stores.keys import object_key


class ObjectVerify(OneStore):
    """Looks at the objects of one store. On S3 one HEAD says whether an object is still the same: its ETag is made when
    it is written, and damage below that is the server's to find. Files and other stores are read.
    """

    @property
    def _contents(self) -> Contents:
        return Contents(self._requests)

    def verify(self, copies: Sequence[Stored]) -> list[CopyOutcome]:
        return [self._one(each) for each in copies]

    def _one(self, copy: Stored) -> CopyOutcome:
        try:
            self._look(copy)
        except HOPELESS:
            raise
        except StoreError as error:
            return CopyOutcome(copy.target, CopyFate.FAILED, error=str(error))
        return CopyOutcome(copy.target, CopyFate.PRESENT, copy.size, copy.checksum)

    def _look(self, copy: Stored) -> None:
        """Raises StoreError unless the object is as it was seen to be."""
        key = object_key(copy.target)
        found = self._contents.requests.head(key)
        if found.size != copy.size:
            raise StoreError(f"{copy.target!r} has {found.size:,} bytes now, and had {copy.size:,}")
        if key.scheme == "s3" and is_tag(copy.checksum, found.etag):
            return
        form = form_of(copy.checksum)
        if form == ETAG or self._contents.checksum(key, found, form) != copy.checksum:
            raise StoreError(f"{copy.target!r} has other bytes now than when it was copied")
