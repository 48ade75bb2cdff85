"""The signature of a request to S3, version 4. Pure.

Botocore's own takes a thousand calls for one request, more than all the rest of a small copy; tests see that both sign
alike.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import urlsplit

UNSIGNED = "UNSIGNED-PAYLOAD"
_METHOD = "AWS4-HMAC-SHA256"
_PORTS = {"http": ":80", "https": ":443"}


class Secrets(NamedTuple):
    """What a request is signed with, as botocore names it."""

    access_key: str
    secret_key: str
    token: str | None


def signed(
    secrets: Secrets, region: str, method: str, url: str, headers: Mapping[str, str], payload: str, now: datetime
) -> dict[str, str]:
    """Returns the headers that a request goes with. `payload` is the sha256 of its body, or says that it has none."""
    address = urlsplit(url)
    moment = now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{moment[:8]}/{region}/s3/aws4_request"
    told = {"Host": host(url), "X-Amz-Content-SHA256": payload, "X-Amz-Date": moment, **headers}
    if secrets.token is not None:
        told["X-Amz-Security-Token"] = secrets.token
    lines = sorted((name.lower(), " ".join(value.split())) for name, value in told.items())
    names = ";".join(name for name, _ in lines)
    written = "".join(f"{name}:{value}\n" for name, value in lines)
    whole = f"{method}\n{address.path or '/'}\n{_sorted(address.query)}\n{written}\n{names}\n{payload}"
    text = f"{_METHOD}\n{moment}\n{scope}\n{sha256(whole.encode()).hexdigest()}"
    signature = hmac.digest(_key(secrets.secret_key, moment[:8], region), text.encode(), "sha256").hex()
    said = f"Credential={secrets.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**told, "Authorization": f"{_METHOD} {said}"}


def host(url: str) -> str:
    """Returns the host of an address, as requests name it: without the port that everybody takes for granted."""
    address = urlsplit(url)
    return address.netloc.rpartition("@")[2].lower().removesuffix(_PORTS.get(address.scheme, ""))


def _sorted(query: str) -> str:
    pairs = sorted(each.partition("=") for each in query.split("&")) if query else []
    return "&".join(f"{name}={value}" for name, _, value in pairs)


@lru_cache(maxsize=8)
def _key(secret: str, day: str, region: str) -> bytes:
    """Returns the key of one day."""
    key = f"AWS4{secret}".encode()
    for each in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, each.encode(), "sha256")
    return key
