"""Deletes on S3, by boto3: many keys in one request, and an answer for each of them.

S3 says "deleted" of a key that was not there, and asking first would cost a request per key: DELETED means here that
it is gone now. A key in neither half of an answer is not taken for gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import botocore.exceptions

from firnline.errors import BadCredentials, StoreError
from firnline.ports.delete import Fate
from firnline.stores.answers import HOPELESS, Answer
from firnline.stores.bulk_xml import Said
from firnline.stores.failures import PASSING, SLOW_DOWN, failure, unreachable
from firnline.stores.keys import Key
from firnline.stores.wire import BulkWire

_GONE = Answer(Fate.DELETED)
_SILENCE = Answer(Fate.FAILED, "the store said nothing of this key", again=True)
_CHANGED = ("PreconditionFailed", "412")


def delete_bulk(wire: BulkWire, bucket: str, names: Sequence[str]) -> list[Answer]:
    """Returns one answer per name, from one request. Raises where the bucket or the credentials are gone."""
    try:
        said = wire.delete(bucket, names)
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


def code_of(error: botocore.exceptions.ClientError) -> str:
    """Returns the store's own word for a failure; its HTTP status where it has none."""
    status = str(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", ""))
    code = str(error.response.get("Error", {}).get("Code", "") or status)
    return code if code in PASSING or status not in ("429", "500", "502", "503", "504") else status


def _name_by_name(said: Said, bucket: str, names: Sequence[str]) -> list[Answer]:
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
