"""How a store's failures are told apart: gone, taken, worth another try, or never going to work.

Every failure names what to do about it, and none shows a secret: addresses lose their query, where signatures are.
"""

from __future__ import annotations

import re
from typing import Any

from firnline.errors import (
    AccessDenied,
    BadCredentials,
    ExpiredCredentials,
    NoSuchBucket,
    ObjectFrozen,
    PermanentStoreError,
    StoreError,
    Unreachable,
)
from firnline.stores.keys import Key

SLOW_DOWN = frozenset(
    ["SlowDown", "ServiceUnavailable", "Throttling", "ThrottlingException", "RequestLimitExceeded",
     "TooManyRequests", "TooManyRequestsException", "ServerBusy", "503", "429"]
)  # fmt: skip
PASSING = SLOW_DOWN | frozenset(
    ["InternalError", "RequestTimeout", "OperationAborted", "ConditionalRequestConflict", "500", "502", "504", "408",
     "409"]
)  # fmt: skip
HOPELESS = (NoSuchBucket, BadCredentials, ExpiredCredentials)
"""No further request can succeed after these."""
_CODE = re.compile(r"<Code>\s*([A-Za-z0-9]+)\s*</Code>")
_STATUS = re.compile(r"status code: (\d{3})")
_QUERY = re.compile(r"(https?://[^\s?]*)\?\S*")
_ORIGIN = re.compile(r"https?://[^/?\s]+")
_REFUSED = ("ConnectionRefused", "Connection refused")
_NO_ANSWER = ("error sending request", "operation timed out", "connection closed", "error decoding response body",
              "connection error")  # fmt: skip


def code_in(message: str) -> str:
    """Returns the store's own word for a failure in obstore's message, its HTTP status, or nothing."""
    found = _CODE.search(message) or _STATUS.search(message)
    return found[1] if found else ""


def code_of(error: Any) -> str:
    """Returns the store's own word for a refusal that botocore tells; its HTTP status where it has none."""
    status = str(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", ""))
    code = str(error.response.get("Error", {}).get("Code", "") or status)
    return code if code in PASSING or status not in ("429", "500", "502", "503", "504") else status


def is_silence(message: str) -> bool:
    """Tells whether a message is about an answer that never came."""
    return any(words in message for words in _NO_ANSWER)


_KINDS: tuple[tuple[tuple[str, ...], type[StoreError], str, str], ...] = (
    (
        ("NoSuchBucket",),
        NoSuchBucket,
        "there is no bucket {bucket}",
        "check its name, s3.endpoint and s3.region",
    ),
    (
        ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken", "RequestExpired"),
        ExpiredCredentials,
        "the credentials for {bucket} have expired: {said}",
        "log in again, unless a catalog hands them out, anew for each command; `firnline resume` goes on with a run",
    ),
    (
        (
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "InvalidClientTokenId",
            "XAdminUserNotFound",
            "AuthFailure",
            "401",
        ),
        BadCredentials,
        "{bucket} does not accept the credentials: {said}",
        "check the access key, its secret and the endpoint",
    ),
    (
        ("RequestTimeTooSkewed",),
        PermanentStoreError,
        "{bucket} says that this machine's clock is wrong",
        "set the clock",
    ),
    (
        ("InvalidObjectState", "ObjectNotInActiveTierError"),
        ObjectFrozen,
        "{key!r} is in an archive class and cannot be read now",
        "have it restored first, which takes hours; `firnline restore` asks for it and waits",
    ),
    (
        ("AccessDenied", "AllAccessDisabled", "AccountProblem", "Forbidden", "403"),
        AccessDenied,
        "no permission for {key!r}: {said}",
        "ask for the permission that the message names",
    ),
    (
        ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "301"),
        PermanentStoreError,
        "{bucket} is not here: {said}",
        "set s3.region to the bucket's own region",
    ),
)


def failure(code: str, key: Key, said: str) -> StoreError:
    """Returns the error for what the store said, with a way out."""
    for codes, kind, message, hint in _KINDS:
        if code in codes:
            bucket = f"{key.scheme}://{key.authority}"
            return kind(message.format(bucket=bucket, key=key.text, said=plain(said)), hint)
    return StoreError(f"{key.text!r} failed: {plain(said)}", "try again; `firnline doctor` looks at the store")


def no_bucket(key: Key) -> StoreError:
    return failure("NoSuchBucket", key, "")


def unreachable(key: Key, said: str) -> Unreachable:
    """Returns the error for an answer that never came; of a server that refuses connections in words of our own, since
    a library tells that in a drawing of its own parts.
    """
    hint = "check the endpoint and the network; then try again"
    address = _ORIGIN.search(said)
    if address and any(word in said for word in _REFUSED):
        return Unreachable(f"the store at {address[0]} does not answer: nobody accepts connections there", hint)
    return Unreachable(f"no answer for {key.text!r}: {plain(said)}", hint)


def plain(said: str) -> str:
    """Returns the first line, without the queries of addresses: signatures and tokens travel there."""
    return _QUERY.sub(r"\1", said.partition("\n")[0]).partition(": <")[0].strip()
