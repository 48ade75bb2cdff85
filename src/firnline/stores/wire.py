"""The XML of bulk deletes on S3, for a thousand keys at once: botocore's own way takes most of a delete's time.

It hooks into botocore by its events, so address, signature and failures stay botocore's. obstore is as quick, but it
takes a key that the answer does not mention for deleted.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import md5
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

_NAMES = "firnline names"
_HEAD = '<?xml version="1.0" encoding="UTF-8"?><Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'


def teach(client: Any) -> None:
    """Makes the client's DeleteObjects take plain names as its objects, which must survive XML."""
    client.meta.events.register("provide-client-params.s3.DeleteObjects", _take_names)
    client.meta.events.register("before-call.s3.DeleteObjects", _write)
    # The star comes before botocore's own look at the answer, which would read it once more.
    client.meta.events.register("before-parse.*.DeleteObjects", _read)


def _take_names(params: dict[str, Any], context: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Returns the parameters without the names: an empty request, which a server refuses, if they got lost."""
    context[_NAMES] = params["Delete"]["Objects"]
    return {**params, "Delete": {"Objects": []}}


def _write(params: dict[str, Any], **_: Any) -> None:
    """Adds also the checksum that every S3 knows: several servers refuse a bulk delete that has only a newer one."""
    params["body"] = _body(params["context"][_NAMES])
    digest = md5(params["body"], usedforsecurity=False).digest()
    params["headers"]["Content-MD5"] = b64encode(digest).decode()


def _body(names: Sequence[str]) -> bytes:
    objects = "".join([f"<Object><Key>{escape(name)}</Key></Object>" for name in names])
    return f"{_HEAD}{objects}</Delete>".encode()


def _read(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Reads an answer in place of botocore. What is no such answer is left to it: half an answer, or a failure."""
    root = _whole(response_dict["body"]) if response_dict["status_code"] == 200 else None
    if root is None or not root.tag.endswith("DeleteResult"):
        return
    space = root.tag.removesuffix("DeleteResult")
    customized_response_dict["Deleted"] = [each.findtext(f"{space}Key") for each in root.findall(f"{space}Deleted")]
    customized_response_dict["Errors"] = [
        {part.tag.removeprefix(space): part.text or "" for part in each} for each in root.findall(f"{space}Error")
    ]
    response_dict["body"] = b""


def _whole(body: bytes) -> ElementTree.Element | None:
    try:
        return ElementTree.fromstring(body)
    except ElementTree.ParseError:
        return None
