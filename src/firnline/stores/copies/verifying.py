"""Looking at copies again, before what they were made from may go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firnline.errors import StoreError
from firnline.patience import Patience
from firnline.ports.copying import CopyFate, CopyOutcome, Stored
from firnline.stores.buckets import Buckets
from firnline.stores.copies.checksums import ETAG, form_of, is_tag
from firnline.stores.copies.contents import Contents
from firnline.stores.copies.requests import PacedRequests
from firnline.stores.copies.route import COPY_PATIENCE
from firnline.stores.failures import HOPELESS
from firnline.stores.keys import object_key
from firnline.stores.throttle import Throttle


class ObjectVerify:
    """Looks at the objects of one store. On S3 one HEAD says whether an object is still the same: its ETag is made when
    it is written, and damage below that is the server's to find. Files and other stores are read.
    """

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        throttle: Throttle | None = None,
        patience: Patience = COPY_PATIENCE,
    ) -> None:
        self._properties = dict(properties or {})
        self._throttle = throttle or Throttle()
        self._patience = patience
        self._contents = Contents(PacedRequests(Buckets(properties), self._throttle, patience))

    def __getstate__(self) -> dict[str, Any]:
        return {"properties": self._properties, "throttle": self._throttle, "patience": self._patience}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def share(self, parts: int) -> ObjectVerify:
        return ObjectVerify(self._properties, throttle=self._throttle.share(parts), patience=self._patience)

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
