"""Writes to S3 that never replace an object: in one request, in parts, or by the server itself from another object.

`If-None-Match: *` goes with every request that gives an object its name. Not every server honours it, least of all on a
copy, so the name was looked at before. The race that is left: two writers both see nothing, and the second one replaces
what the first one wrote. It is harmless: both write the bytes of one source, which is never written again, under a name
that is made from the source's; and each looks at what lies there afterwards.

An upload that is not completed is no object. Parts of a process that was killed stay until the bucket's own rule
(AbortIncompleteMultipartUpload) removes them: to look for them takes a right that a writer does not otherwise need.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import md5
from typing import TYPE_CHECKING, Any, NamedTuple

import obstore

from firnline.errors import NoSuchBucket, StoreError
from firnline.ports.catalogs import Still
from firnline.ports.stores import ObjectMeta
from firnline.stores.buckets import failing
from firnline.stores.copies.requests import UNSUPPORTED, PacedRequests, Unsupported, refusing
from firnline.stores.failures import code_in
from firnline.stores.keys import Key, object_name
from firnline.stores.local import Piece

if TYPE_CHECKING:
    from obstore import Attributes, PutMode

SMALLEST_COLD_BYTES = 131_072
"""Smaller objects cost as much as one of this size in every colder class, so they stay in the standard one."""
FROZEN_CLASSES = ("GLACIER", "DEEP_ARCHIVE")
"""Objects of these must be asked for before anybody can read them."""
SMALLEST_PART = 5 << 20
"""What S3 takes of every part but the last."""
LARGEST_COPY = 5 << 30
"""What the server copies in one request, whole or as one part."""

_IF_ABSENT = {"IfNoneMatch": "*"}
_WITHOUT_TAGS = {"TaggingDirective": "REPLACE"}


class _Upload(NamedTuple):
    key: Key
    id: str

    def asked(self) -> dict[str, Any]:
        return {**_named(self.key), "UploadId": self.id}


@dataclass
class S3Uploads:
    """Writes objects of one S3, in a storage class where they are large enough for it. Each returns the ETag, and
    raises AlreadyExists where the name is taken.
    """

    requests: PacedRequests
    storage_class: str | None = None

    def put(self, key: Key, data: Piece, still: Still) -> str:
        """Writes an object at once. By obstore: botocore takes twice the time for a megabyte."""
        named = self._class(len(data))
        cold: Attributes = {"Storage-Class": named["StorageClass"]} if named else {}

        def send(mode: PutMode = "overwrite") -> str:
            with failing(key, missing=NoSuchBucket):
                store = self.requests.buckets.opened(key)
                said = obstore.put(store, object_name(key), data, attributes=cold, mode=mode, use_multipart=False)
            return str(said["e_tag"])

        try:
            return self.requests.write(key, lambda: send("create"), still)
        except StoreError as error:
            if code_in(str(error.__cause__)) not in UNSUPPORTED:
                raise
        return self.requests.write(key, send, still)

    def put_proven(self, key: Key, data: Piece, still: Still) -> str:
        """Writes an object at once; the server refuses it if it does not receive it as it was sent."""
        proof = b64encode(md5(data, usedforsecurity=False).digest()).decode()
        asked = {**_named(key), **self._class(len(data)), "ContentMD5": proof, "Body": bytes(data)}

        def send(**condition: str) -> Any:
            return self._client.put_object(**asked, **condition)

        return str(self._if_absent(key, send, still)["ETag"])

    def freezes(self, size: int) -> bool:
        """Tells whether an object of this size cannot be read once it is written."""
        return self._class(size).get("StorageClass") in FROZEN_CLASSES

    def put_parts(self, key: Key, pieces: Iterator[Piece], size: int, still: Still) -> tuple[str, list[bytes]]:
        """Writes an object whose every piece is a part. Returns the md5s of the parts too: each goes with its part, and
        the server refuses one that it does not receive like that.
        """
        sums: list[bytes] = []
        with self._upload(key, size, still) as upload:
            tags = [self._put_part(upload, piece, sums, still) for piece in pieces]
            return self._complete(upload, tags, still), sums

    def copy(self, source: Key, meta: ObjectMeta, target: Key, still: Still) -> str:
        """Lets the server copy an object: its bytes pass nobody else. Tags stay behind: a rule of the live bucket may
        remove what has one.
        """
        asked = {**_named(target), **_copied_from(source, meta), **self._class(meta.size), **_WITHOUT_TAGS}

        def send(**condition: str) -> Any:
            return self._client.copy_object(**asked, **condition)

        return str(self._if_absent(target, send, still)["CopyObjectResult"]["ETag"])

    def copy_parts(self, source: Key, meta: ObjectMeta, part: int, target: Key, still: Still) -> str:
        """Lets the server copy an object in parts. Those of the source give the copy the source's own ETag."""
        with self._upload(target, meta.size, still) as upload:
            starts = enumerate(range(0, meta.size, part), 1)
            asked = {**upload.asked(), **_copied_from(source, meta)}
            tags = [
                self._copy_part(target, {**asked, "PartNumber": number, **_span(start, part, meta.size)}, still)
                for number, start in starts
            ]
            return self._complete(upload, tags, still)

    @property
    def _client(self) -> Any:
        return self.requests.buckets.s3().client

    def _class(self, size: int) -> dict[str, str]:
        cold = self.storage_class is not None and size >= SMALLEST_COLD_BYTES
        return {"StorageClass": str(self.storage_class)} if cold else {}

    @contextmanager
    def _upload(self, key: Key, size: int, still: Still) -> Iterator[_Upload]:
        begun = self._send(key, lambda: self._client.create_multipart_upload(**_named(key), **self._class(size)), still)
        upload = _Upload(key, str(begun["UploadId"]))
        try:
            yield upload
        except BaseException:
            with suppress(StoreError), refusing(key):  # its parts cost money until the bucket's rule removes them
                self._client.abort_multipart_upload(**upload.asked())
            raise

    def _put_part(self, upload: _Upload, piece: Piece, sums: list[bytes], still: Still) -> dict[str, Any]:
        sums.append(md5(piece, usedforsecurity=False).digest())
        part = {"PartNumber": len(sums), "ContentMD5": b64encode(sums[-1]).decode()}
        body = piece if isinstance(piece, bytes) else bytes(piece)
        said = self._send(upload.key, lambda: self._client.upload_part(**upload.asked(), **part, Body=body), still)
        return {"PartNumber": len(sums), "ETag": said["ETag"]}

    def _copy_part(self, key: Key, asked: dict[str, Any], still: Still) -> dict[str, Any]:
        said = self._send(key, lambda: self._client.upload_part_copy(**asked), still)
        return {"PartNumber": asked["PartNumber"], "ETag": said["CopyPartResult"]["ETag"]}

    def _complete(self, upload: _Upload, tags: list[dict[str, Any]], still: Still) -> str:
        def send(**condition: str) -> Any:
            parts = {"Parts": tags}
            return self._client.complete_multipart_upload(**upload.asked(), MultipartUpload=parts, **condition)

        return str(self._if_absent(upload.key, send, still)["ETag"])

    def _if_absent(self, key: Key, send: Callable[..., Any], still: Still) -> Any:
        """Sends a request with its condition, and without where the server says that it knows none."""
        try:
            return self._send(key, lambda: send(**_IF_ABSENT), still)
        except Unsupported:
            return self._send(key, send, still)

    def _send(self, key: Key, call: Callable[[], Any], still: Still) -> Any:
        def asked() -> Any:
            with refusing(key):
                return call()

        return self.requests.write(key, asked, still)


def _named(key: Key) -> dict[str, Any]:
    return {"Bucket": key.authority, "Key": object_name(key)}


def _copied_from(source: Key, meta: ObjectMeta) -> dict[str, Any]:
    """Returns what names a source, and only as it was looked at."""
    seen = {} if meta.etag is None else {"CopySourceIfMatch": meta.etag}
    return {"CopySource": _named(source), **seen}


def _span(start: int, part: int, size: int) -> dict[str, str]:
    return {"CopySourceRange": f"bytes={start}-{min(start + part, size) - 1}"}
