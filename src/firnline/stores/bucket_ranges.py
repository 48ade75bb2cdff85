"""Pieces of a listing of buckets, as the Arrow batches that obstore makes itself: no row passes through Python.

obstore has no word for some keys. One with a doubled slash or a segment `.` stops the listing. A folder marker
(`sub/`, made by consoles and Hadoop) is listed as `sub`: an engine that meets the same object twice refuses the
listing, so a marker is never mistaken for the file of that name. It holds no data and may be left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress

import obstore
import pyarrow as pa
import pyarrow.compute as pc

from firnline.errors import StoreError
from firnline.ports.listings import KeyRange
from firnline.stores.buckets import PAGE_RETRIES, Buckets, failing
from firnline.stores.keys import Key, folder_key, object_name
from firnline.stores.pieces import LISTED, between, by_folders, cuts_by_keys
from firnline.stores.throttle import PAGE

Asking = Callable[[str], AbstractContextManager[None]]
"""Returns what stands around one request in a folder."""

_ROWS = 10_000
_UNNAMEABLE = re.compile(r"[\x00-\x1f\x7f]|//")


class BucketRanges:
    """Splits and reads buckets that are opened already. `page`: how many keys a store sends in one answer; `asking`
    stands around each request that looks where to split.
    """

    def __init__(self, buckets: Buckets, page: int = PAGE, asking: Asking = lambda folder: nullcontext()) -> None:
        self._buckets = buckets
        self._page = page
        self._asking = asking

    def split(self, prefix: str, wanted: int) -> list[KeyRange]:
        key = folder_key(prefix)
        if not _lists_in_order(key):
            return by_folders(prefix, wanted, self.subfolders)
        start = _with_slash(prefix)
        cuts = cuts_by_keys(lambda after: self._first(key, after), lambda stem: self._is_long(key, stem), start, wanted)
        return between(prefix, cuts)

    def batches(self, piece: KeyRange) -> Iterator[pa.RecordBatch]:
        """Yields the objects of a piece; stops where the store has passed its end."""
        last = ""
        for batch in self._listed(piece):
            keys = batch.column("key")
            if piece.after is not None or piece.until is not None:
                last = _last_in_order(keys, last, piece.folder)
            within = batch.filter(_within(keys, piece))
            if len(within):
                yield within
            if piece.until is not None and last > piece.until:
                return

    def _listed(self, piece: KeyRange) -> Iterator[pa.RecordBatch]:
        key = folder_key(piece.folder)
        folder = object_name(key).rstrip("/")
        with failing(key, missing=StoreError):
            bucket = self._buckets.opened(key, PAGE_RETRIES)
            if piece.deep:
                offset = None if piece.after is None else _offset(_name_of(piece.after, key, folder))
                # A piece that ends is read page by page: a larger chunk would fetch what its neighbours list too.
                rows = _ROWS if piece.until is None else self._page
                found = obstore.list(bucket, folder, offset=offset, chunk_size=rows, return_arrow=True)
                for chunk in found:
                    yield _renamed(pa.record_batch(chunk), key, folder)
            else:
                direct = pa.table(obstore.list_with_delimiter(bucket, folder, return_arrow=True)["objects"])
                for batch in direct.to_batches():
                    yield _renamed(batch, key, folder)

    def _is_long(self, key: Key, stem: str) -> bool:
        """Tells whether more keys begin with the stem than the store sends in one answer."""
        first = self._keys(key, stem)
        return len(first) == self._page and first[-1].startswith(stem)

    def _first(self, key: Key, after: str) -> str | None:
        """Returns the first key after a string. S3 is asked for that one alone: obstore would fetch a whole page."""
        folder = object_name(key).rstrip("/")
        if key.scheme == "s3":
            with suppress(LookupError), self._asking(key.text):
                start = _name_of(after, key, folder)
                from firnline.stores.s3.listing import first_key

                name = first_key(self._buckets.s3().client, key.authority, f"{folder}/" if folder else "", start)
                return None if name is None else _with_slash(key.text) + name[len(folder) + 1 if folder else 0 :]
        return next(iter(self._keys(key, after)), None)

    def _keys(self, key: Key, after: str) -> list[str]:
        """Returns the first keys after a string: as many as one answer of the store holds."""
        folder = object_name(key).rstrip("/")
        skip = len(folder) + 1 if folder else 0
        offset = _offset(_name_of(after, key, folder))
        with failing(key, missing=StoreError), self._asking(key.text):
            bucket = self._buckets.opened(key, PAGE_RETRIES)
            found = next(iter(obstore.list(bucket, folder, offset=offset, chunk_size=self._page)), ())
        keys = [_with_slash(key.text) + each["path"][skip:] for each in found]
        return [each for each in keys if each > after]

    def subfolders(self, folder: str) -> list[str]:
        """Returns the folders that are directly in a folder."""
        key = folder_key(folder)
        name = object_name(key).rstrip("/")
        skip = len(name) + 1 if name else 0
        with failing(key, missing=StoreError), self._asking(folder):
            found = obstore.list_with_delimiter(self._buckets.opened(key, PAGE_RETRIES), name)
        return [_with_slash(folder) + each[skip:] for each in found["common_prefixes"]]


def _lists_in_order(key: Key) -> bool:
    """Tells whether the store starts a listing anywhere and goes on in the order of bytes.

    Azure starts at the beginning always, and directory buckets of S3 have no order.
    """
    return key.scheme in ("s3", "gs", "memory") and not key.authority.endswith("--x-s3")


def _offset(name: str) -> str:
    """Returns the longest beginning of the name that obstore can start after: it lists a few keys more, never less."""
    unnameable = _UNNAMEABLE.search(name)
    return (name[: unnameable.start()] if unnameable else name).rstrip("/.")


def _name_of(text: str, key: Key, folder: str) -> str:
    """Returns the name in its bucket of what the caller spells with the folder's own spelling."""
    below = text.removeprefix(_with_slash(key.text))
    return f"{folder}/{below}" if folder else below


def _renamed(found: pa.RecordBatch, key: Key, folder: str) -> pa.RecordBatch:
    """Returns the objects by their full locations, spelled as the caller spells the folder."""
    skip = len(folder.encode()) + 1 if folder else 0
    keys = pc.binary_replace_slice(found.column("path"), 0, skip, _with_slash(key.text))
    micros = found.column("last_modified").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    millis = pc.divide(pc.add(micros, 500), 1000)
    columns = [keys, found.column("size").cast(pa.int64()), millis, found.column("e_tag")]
    return pa.record_batch(columns, schema=LISTED)


def _within(keys: pa.Array, piece: KeyRange) -> pa.Array:
    within = pc.is_valid(keys)
    if piece.after is not None:
        within = pc.and_(within, pc.greater(keys, piece.after))
    if piece.until is not None:
        within = pc.and_(within, pc.less_equal(keys, piece.until))
    return within


def _last_in_order(keys: pa.Array, last: str, folder: str) -> str:
    """Returns the last key. Raises StoreError where the store does not list in order: then a piece that ends early
    would leave out keys that come later.

    Only a folder marker, which has lost its slash, may seem to come too late.
    """
    if not pc.all(pc.greater_equal(keys[1:], keys[:-1])).as_py() or keys[0].as_py() < last:
        for key in keys.to_pylist():
            if key + "/" < last:
                raise StoreError(f"the store does not list {folder!r} in order: {key!r} after {last!r}")
            last = max(last, key)
        return last
    return str(keys[-1].as_py())


def _with_slash(folder: str) -> str:
    return folder if folder.endswith("/") else folder + "/"
