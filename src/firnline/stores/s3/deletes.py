"""Deletes on S3: many keys in one request, as they go over the wire, and an answer for each of them.

Sent by the wire: botocore's own way takes longer than a server takes for a thousand keys. obstore is as quick, but it
takes a key that the answer does not mention for deleted.

S3 says "deleted" of a key that was not there, and asking first would cost a request per key: DELETED means here that
it is gone now. A key in neither half of an answer is not taken for gone.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import md5
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import botocore.exceptions

from firnline.errors import BadCredentials, StoreError
from firnline.ports.delete import Fate
from firnline.stores.delete_batches import Answer
from firnline.stores.failures import HOPELESS, PASSING, SLOW_DOWN, code_of, failure, unreachable
from firnline.stores.keys import Key
from firnline.stores.s3.requests import WireRequest
from firnline.stores.s3.signed import S3Wire

_HEAD = '<?xml version="1.0" encoding="UTF-8"?><Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
_OPENING = re.compile(r'(?:<\?xml version="1\.0" encoding="UTF-8"\?>\s*)?<DeleteResult(?: xmlns="[^"<>&]*")?>')
_FIRST, _NEXT, _LAST = "<Deleted><Key>", "</Key></Deleted><Deleted><Key>", "</Key></Deleted></DeleteResult>"


class BulkAnswer(NamedTuple):
    """The names that a store called deleted, and what it said of each other one; None is a name that it left out."""

    deleted: list[str | None]
    errors: list[dict[str, str]]


def write_request(names: Sequence[str]) -> bytes:
    """Returns the names as a request, each once. They must survive XML."""
    keys = escape("\0".join(dict.fromkeys(names))).replace("\0", "</Key></Object><Object><Key>")
    return f"{_HEAD}<Object><Key>{keys}</Key></Object></Delete>".encode()


def read_answer(body: bytes) -> BulkAnswer | None:
    """Returns a whole answer; None for half of one, and for anything else."""
    return _plain(body) or _parsed(body)


def _plain(body: bytes) -> BulkAnswer | None:
    """Returns the answer where all went well and it holds nothing but keys: parsing takes ten times as long.

    The text is cut at the tags between two keys. No key has a tag inside, because the tags outside of them are all
    that there are in the text: so it reads as a parser would read it.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    opening = _OPENING.match(text)
    start = opening.end() if opening else 0
    if not opening or not text.startswith(_FIRST, start) or not text.endswith(_LAST):
        return None
    if "&" in text or "\r" in text:  # entities, and the one character that a parser reads as another
        return None
    keys = text[start + len(_FIRST) : -len(_LAST)].split(_NEXT)
    outside = opening[0].count("<") + _FIRST.count("<") + _LAST.count("<") + (len(keys) - 1) * _NEXT.count("<")
    return BulkAnswer(list[str | None](keys), []) if text.count("<") == outside else None


def _parsed(body: bytes) -> BulkAnswer | None:
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        return None
    if not root.tag.endswith("DeleteResult"):
        return None
    space = root.tag.removesuffix("DeleteResult")
    return BulkAnswer(
        [each.findtext(f"{space}Key") for each in root.findall(f"{space}Deleted")],
        [{part.tag.removeprefix(space): part.text or "" for part in each} for each in root.findall(f"{space}Error")],
    )


def _deleted(wire: S3Wire, bucket: str, names: Sequence[str]) -> BulkAnswer:
    """Returns what one request said. Raises botocore's errors; names must survive XML. A success without its XML is a
    failure too: nothing of it can be believed.
    """
    asked = bulk_request(bucket, write_request(names))
    told = wire.send(asked)
    said = read_answer(told.body)
    if said is None:
        raise wire.refusal(asked.operation, told)
    return said


def bulk_request(bucket: str, body: bytes) -> WireRequest:
    """Returns a request with the checksum that every S3 knows; several refuse newer ones alone."""
    proof = {"Content-MD5": b64encode(md5(body, usedforsecurity=False).digest()).decode()}
    return WireRequest("DeleteObjects", "POST", bucket, query="delete", headers=proof, body=body)


_GONE = Answer(Fate.DELETED)
_SILENCE = Answer(Fate.FAILED, "the store said nothing of this key", again=True)
_CHANGED = ("PreconditionFailed", "412")


def delete_bulk(wire: S3Wire, bucket: str, names: Sequence[str]) -> list[Answer]:
    """Returns one answer per name, from one request. Raises where the bucket or the credentials are gone."""
    try:
        said = _deleted(wire, bucket, names)
    except botocore.exceptions.ClientError as error:
        return [_refused(error, _key(bucket, name)) for name in names]
    except botocore.exceptions.BotoCoreError as error:
        return [_unanswered(error, _key(bucket, name)) for name in names]
    return _name_by_name(said, bucket, names)


def _key(bucket: str, name: str) -> Key:
    return Key(f"s3://{bucket}/{name}", "s3", bucket, f"/{name}")


def delete_single(client: Any, key: Key, etag: str | None = None) -> Answer:
    """Returns the answer of one request for one key; with an ETag, the store deletes only that very object."""
    condition = {} if etag is None else {"IfMatch": etag}
    try:
        client.delete_object(Bucket=key.authority, Key=key.path[1:], **condition)
    except botocore.exceptions.ClientError as error:
        return _refused(error, key)
    except botocore.exceptions.BotoCoreError as error:
        return _unanswered(error, key)
    return _GONE


def _name_by_name(said: BulkAnswer, bucket: str, names: Sequence[str]) -> list[Answer]:
    """Returns the answers in the order of the names: "deleted" in the same order is the usual case."""
    if said.deleted == names and not said.errors:
        return [_GONE] * len(names)
    errors = {each.get("Key"): each for each in said.errors}
    told = {name: _failed(each, _key(bucket, str(name))) for name, each in errors.items()}
    answers = {**dict.fromkeys(said.deleted, _GONE), **told}
    return [answers.get(name, _SILENCE) for name in names]


def _failed(said: dict[str, str], key: Key) -> Answer:
    return _answer(said.get("Code", ""), key, said.get("Message", ""))


def _refused(error: botocore.exceptions.ClientError, key: Key) -> Answer:
    code, said = code_of(error), str(error.response.get("Error", {}).get("Message", ""))
    told = failure(code, key, said or code)
    if isinstance(told, HOPELESS):
        raise told from error
    return _answer(code, key, said)


def _answer(code: str, key: Key, said: str) -> Answer:
    if code == "NoSuchKey":
        return Answer(Fate.MISSING)
    if code in _CHANGED:
        return Answer(Fate.CHANGED, "another object has this name now")
    return Answer(Fate.FAILED, f"{code}: {failure(code, key, said).message}", code in PASSING, code in SLOW_DOWN)


def _unanswered(error: botocore.exceptions.BotoCoreError, key: Key) -> Answer:
    """A lost answer is no failure yet: names are never used again, so the same delete can be sent twice."""
    if isinstance(error, botocore.exceptions.NoCredentialsError | botocore.exceptions.CredentialRetrievalError):
        raise BadCredentials(f"no credentials for {key.authority}: {error}", "configure credentials") from error
    told: StoreError = unreachable(key, str(error))
    return Answer(Fate.FAILED, told.message, again=True)
