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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import md5
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote
from xml.sax.saxutils import escape

import obstore

from firnline.errors import NoSuchBucket, StoreError
from firnline.ports.catalogs import Still
from firnline.ports.stores import ObjectMeta
from firnline.stores.buckets import failing
from firnline.stores.copies.checksums import of_whole
from firnline.stores.copies.requests import UNSUPPORTED, Answer, PacedRequests, Unsupported, refusing
from firnline.stores.failures import code_in
from firnline.stores.keys import Key, object_name
from firnline.stores.local import Piece
from firnline.stores.s3.requests import WireRequest, escaped

if TYPE_CHECKING:
    from obstore import Attributes, PutMode

    from firnline.stores.s3.signed import S3Wire

SMALLEST_COLD_BYTES = 131_072
"""Smaller objects cost as much as one of this size in every colder class, so they stay in the standard one."""
FROZEN_CLASSES = ("GLACIER", "DEEP_ARCHIVE")
"""Objects of these must be asked for before anybody can read them."""
SMALLEST_PART = 5 << 20
"""What S3 takes of every part but the last."""
LARGEST_COPY = 5 << 30
"""What the server copies in one request, whole or as one part."""

_IF_ABSENT = {"If-None-Match": "*"}
_WITHOUT_TAGS = {"x-amz-tagging-directive": "REPLACE"}
_WITH_CRC64 = {"x-amz-checksum-algorithm": "CRC64NVME"}


class Arrived(NamedTuple):
    """An object that was written: its ETag, the md5s of its parts where they were sent with them, and the CRC64 of the
    whole where the store tells it.
    """

    etag: str
    md5s: Sequence[bytes] = ()
    crc64: str | None = None


class _Upload(NamedTuple):
    key: Key
    id: str

    def asks(self, operation: str, method: str, query: str = "", **more: Any) -> WireRequest:
        return _asked(operation, method, self.key, query=f"{query}uploadId={quote(self.id, safe='')}", **more)


@dataclass
class S3Uploads:
    """Writes objects of one S3, in a storage class where they are large enough for it. Raises AlreadyExists where the
    name is taken.
    """

    requests: PacedRequests
    storage_class: str | None = None

    def put(self, key: Key, data: Piece, still: Still) -> str:
        """Writes an object at once. By obstore: it takes less time for a megabyte than any way of Python's."""
        named = self._class(len(data))
        cold: Attributes = {"Storage-Class": str(self.storage_class)} if named else {}

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
        proof = _proof(md5(data, usedforsecurity=False).digest())
        asked = _asked("PutObject", "PUT", key, headers={**self._class(len(data)), **proof}, body=data)
        return self._if_absent(key, asked, lambda each: self._wire.send(each).headers["ETag"], still)

    def freezes(self, size: int) -> bool:
        """Tells whether an object of this size cannot be read once it is written."""
        return bool(self._class(size)) and self.storage_class in FROZEN_CLASSES

    def put_parts(self, key: Key, pieces: Iterator[Piece], size: int, still: Still, *, proven: bool = True) -> Arrived:
        """Writes an object whose every piece is a part. A part that is `proven` goes with its md5, and the server
        refuses it if it does not receive it like that; without, its signature says the same, where there is one.
        """
        proven = proven or not self._wire.signs
        md5s: list[bytes] = []
        with self._upload(key, size, still) as upload:
            tags = []
            for number, piece in enumerate(pieces, 1):
                if proven:
                    md5s.append(md5(piece, usedforsecurity=False).digest())
                tags.append(self._put_part(upload, number, piece, _proof(md5s[-1]) if proven else {}, still))
            return self._complete(upload, tags, still)._replace(md5s=md5s)

    def copy(self, source: Key, meta: ObjectMeta, target: Key, still: Still, *, summed: bool = False) -> Arrived:
        """Lets the server copy an object: its bytes pass nobody else. Tags stay behind: a rule of the live bucket may
        remove what has one. `summed`: the store shall tell the CRC64 of the copy.
        """
        headers = {**_copied_from(source, meta), **self._class(meta.size), **_WITHOUT_TAGS}
        asked = _asked("CopyObject", "PUT", target, headers=headers | (_WITH_CRC64 if summed else {}))
        return self._if_absent(target, asked, lambda each: _arrived(self._wire.read(each, "CopyObjectResult")), still)

    def copy_parts(self, source: Key, meta: ObjectMeta, part: int, target: Key, still: Still) -> Arrived:
        """Lets the server copy an object in parts. Those of the source give the copy the source's own ETag."""
        with self._upload(target, meta.size, still) as upload:
            tags = []
            for number, start in enumerate(range(0, meta.size, part), 1):
                headers = {**_copied_from(source, meta), **_span(start, part, meta.size)}
                asked = upload.asks("UploadPartCopy", "PUT", f"partNumber={number}&", headers=headers)
                tags.append(self._read(target, asked, "CopyPartResult", still)["ETag"])
            return self._complete(upload, tags, still)

    @property
    def _wire(self) -> S3Wire:
        return self.requests.buckets.s3().wire

    def _class(self, size: int) -> dict[str, str]:
        cold = self.storage_class is not None and size >= SMALLEST_COLD_BYTES
        return {"x-amz-storage-class": str(self.storage_class)} if cold else {}

    @contextmanager
    def _upload(self, key: Key, size: int, still: Still) -> Iterator[_Upload]:
        asked = _asked("CreateMultipartUpload", "POST", key, query="uploads", headers=self._class(size))
        upload = _Upload(key, self._read(key, asked, "InitiateMultipartUploadResult", still)["UploadId"])
        try:
            yield upload
        except BaseException:
            with suppress(StoreError), refusing(key):  # its parts cost money until the bucket's rule removes them
                self._wire.send(upload.asks("AbortMultipartUpload", "DELETE"))
            raise

    def _put_part(self, upload: _Upload, number: int, piece: Piece, proof: dict[str, str], still: Still) -> str:
        asked = upload.asks("UploadPart", "PUT", f"partNumber={number}&", headers=proof, body=piece)
        return self._send(upload.key, lambda: self._wire.send(asked).headers["ETag"], still)

    def _complete(self, upload: _Upload, tags: Sequence[str], still: Still) -> Arrived:
        asked = upload.asks("CompleteMultipartUpload", "POST", body=_listed(tags))
        root = "CompleteMultipartUploadResult"
        return self._if_absent(upload.key, asked, lambda each: _arrived(self._wire.read(each, root)), still)

    def _read(self, key: Key, asked: WireRequest, root: str, still: Still) -> dict[str, str]:
        return self._send(key, lambda: self._wire.read(asked, root), still)

    def _if_absent(self, key: Key, asked: WireRequest, send: Callable[[WireRequest], Answer], still: Still) -> Answer:
        """Sends a request with its condition, and without where the server says that it knows none."""
        conditional = asked._replace(headers={**asked.headers, **_IF_ABSENT})
        try:
            return self._send(key, lambda: send(conditional), still)
        except Unsupported:
            return self._send(key, lambda: send(asked), still)

    def _send(self, key: Key, call: Callable[[], Answer], still: Still) -> Answer:
        def asked() -> Answer:
            with refusing(key):
                return call()

        return self.requests.write(key, asked, still)


def _asked(operation: str, method: str, key: Key, **more: Any) -> WireRequest:
    return WireRequest(operation, method, key.authority, object_name(key), **more)


def _proof(digest: bytes) -> dict[str, str]:
    return {"Content-MD5": b64encode(digest).decode()}


def _arrived(fields: dict[str, str]) -> Arrived:
    return Arrived(fields["ETag"], crc64=of_whole(fields.get("ChecksumCRC64NVME"), fields.get("ChecksumType")))


def _listed(tags: Sequence[str]) -> bytes:
    """Returns the parts of an upload as a request that ends it."""
    parts = (
        f"<Part><ETag>{escape(tag)}</ETag><PartNumber>{number}</PartNumber></Part>"
        for number, tag in enumerate(tags, 1)
    )
    space = "http://s3.amazonaws.com/doc/2006-03-01/"
    return f'<CompleteMultipartUpload xmlns="{space}">{"".join(parts)}</CompleteMultipartUpload>'.encode()


def _copied_from(source: Key, meta: ObjectMeta) -> dict[str, str]:
    """Returns what names a source, and only as it was looked at."""
    seen = {} if meta.etag is None else {"x-amz-copy-source-if-match": meta.etag}
    return {"x-amz-copy-source": escaped(f"{source.authority}/{object_name(source)}"), **seen}


def _span(start: int, part: int, size: int) -> dict[str, str]:
    return {"x-amz-copy-source-range": f"bytes={start}-{min(start + part, size) - 1}"}
