"""Listing any store in pieces, on whichever machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager

import pyarrow as pa

from firnline.ports.listings import KeyRange
from firnline.stores.bucket_ranges import BucketRanges
from firnline.stores.buckets import Buckets
from firnline.stores.keys import folder_key
from firnline.stores.local_ranges import local_batches, named_folders, split_local
from firnline.stores.throttle import Throttle


class ObjectRanges:
    """Splits and lists local files, memory and buckets. A pickled copy opens its own connections.

    It names every object exactly as `ObjectStores.list` does. `properties` are a catalog's, by PyIceberg's names;
    `throttle` is shared by all that read the store.
    """

    def __init__(self, properties: Mapping[str, str] | None = None, throttle: Throttle | None = None) -> None:
        self._properties = dict(properties or {})
        self._throttle = throttle or Throttle()
        self._buckets = BucketRanges(Buckets(self._properties), asking=self._asking)

    def __reduce__(self) -> tuple[type[ObjectRanges], tuple[dict[str, str], Throttle]]:
        return ObjectRanges, (self._properties, self._throttle)

    def share(self, parts: int) -> ObjectRanges:
        return ObjectRanges(self._properties, self._throttle.share(parts))

    def split(self, prefix: str, wanted: int) -> list[KeyRange]:
        if folder_key(prefix).scheme == "file":
            return split_local(prefix, wanted)
        return self._buckets.split(prefix, wanted)

    def folders(self, folder: str) -> list[str]:
        """Returns the folders that are directly in a folder, without opening them; links to folders too: who asks
        which tables are there must see one that is named by a link.
        """
        is_local = folder_key(folder).scheme == "file"
        return named_folders(folder) if is_local else self._buckets.subfolders(folder)

    def batches(self, piece: KeyRange) -> Iterator[pa.RecordBatch]:
        is_local = folder_key(piece.folder).scheme == "file"
        found = local_batches(piece) if is_local else self._buckets.batches(piece)
        return self._throttle.listing(self._throttle.reads(piece.folder), found, len)

    def _asking(self, folder: str) -> AbstractContextManager[None]:
        return self._throttle.asking(self._throttle.reads(folder))
