"""A catalog's PyIceberg properties as the settings of its stores. Pure: nothing is opened here.

Names are PyIceberg's own (`s3.endpoint`, `client.region`, `adls.account-name`, …), so a set-up that works there works
here unchanged. What is not set comes from the environment, the profile or the machine, as AWS's own tools find it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from firnline.errors import PermanentStoreError
from firnline.foreign import is_address

Properties = Mapping[str, str]

CONNECT_TIMEOUT_S = 5.0
REQUEST_TIMEOUT_S = 20.0
"""Shorter than the margin of a lease: a request that was sent in time must not arrive after the lease is another's."""

_TRUE = ("true", "1", "yes", "on", "t", "y")
_FALSE = ("false", "0", "no", "off", "f", "n")
_GCS = {"gcs.oauth2.token": "bearer_token", "gcs.service.host": "base_url"}
_ADLS = {
    "adls.account-name": "account_name",
    "adls.account-key": "account_key",
    "adls.sas-token": "sas_key",
    "adls.tenant-id": "tenant_id",
    "adls.client-id": "client_id",
    "adls.client-secret": "client_secret",
    "adls.token": "token",
}
_CONNECTION_STRING = {"AccountName": "account_name", "AccountKey": "account_key", "SharedAccessSignature": "sas_key",
                      "BlobEndpoint": "endpoint"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class S3Settings:
    """How an S3 is reached. None means: as AWS's own chain says."""

    endpoint: str | None = None
    region: str | None = None
    access_key_id: str | None = field(default=None, repr=False)
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    profile: str | None = None
    role_arn: str | None = None
    role_session_name: str = "firnline"
    anonymous: bool = False
    virtual: bool | None = None
    proxy: str | None = field(default=None, repr=False)
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    request_timeout_s: float = REQUEST_TIMEOUT_S

    def addressing(self, has_endpoint: bool) -> str:
        """Returns `path` or `virtual`. A server of one's own rarely has a host name per bucket."""
        virtual = (not has_endpoint) if self.virtual is None else self.virtual
        return "virtual" if virtual else "path"


def s3_settings(properties: Properties) -> S3Settings:
    """Returns the settings of every S3 bucket of a catalog. Raises PermanentStoreError for a value that is none."""

    def first(name: str) -> str | None:
        return properties.get(f"s3.{name}") or properties.get(f"client.{name}") or None

    return S3Settings(
        endpoint=_address(properties, "s3.endpoint"),
        region=first("region"),
        access_key_id=first("access-key-id"),
        secret_access_key=first("secret-access-key"),
        session_token=first("session-token"),
        profile=first("profile-name"),
        role_arn=first("role-arn"),
        role_session_name=first("role-session-name") or "firnline",
        anonymous=_flag(properties, "s3.anonymous") or False,
        virtual=_virtual(properties),
        proxy=_address(properties, "s3.proxy-uri"),
        connect_timeout_s=_seconds(properties, "s3.connect-timeout", CONNECT_TIMEOUT_S),
        request_timeout_s=_seconds(properties, "s3.request-timeout", REQUEST_TIMEOUT_S),
    )


def gcs_settings(properties: Properties) -> dict[str, str]:
    """Returns obstore's settings for Google Cloud Storage."""
    _address(properties, "gcs.service.host")
    return _renamed(properties, _GCS)


def azure_settings(properties: Properties) -> dict[str, str]:
    """Returns obstore's settings for Azure; those that stand alone win over the connection string."""
    settings = _from_connection_string(properties.get("adls.connection-string", ""))
    settings |= _renamed(properties, _ADLS)
    host = properties.get("adls.account-host")
    if host:
        settings["endpoint"] = host if "://" in host else f"https://{host}"
    if "endpoint" in settings:
        check_address("adls.account-host", settings["endpoint"])
    if _flag(properties, "adls.anon"):
        settings["skip_signature"] = "true"
    return settings


_OF_SERVERS = ("s3.endpoint", "s3.region", "client.region", "s3.profile-name", "client.profile-name", "s3.proxy-uri",
               "gcs.service.host")  # fmt: skip


def server_of(properties: Properties) -> str:
    """Returns what tells apart the servers that some settings reach, and no secret: what two of them call alike are two
    objects. Settings that differ may still reach one server.
    """
    azure = azure_settings(properties)
    said = [*(properties.get(name) for name in _OF_SERVERS), azure.get("account_name"), azure.get("endpoint")]
    return json.dumps(said) if any(said) else ""


def http_options(endpoint: str | None, connect_s: float, request_s: float, proxy: str | None) -> dict[str, Any]:
    """Returns obstore's client options. It takes plain http only where that is said."""
    options: dict[str, Any] = {"connect_timeout": f"{connect_s}s", "timeout": f"{request_s}s"}
    if endpoint is not None and endpoint.lower().startswith("http://"):
        options["allow_http"] = True
    return options | ({} if proxy is None else {"proxy_url": proxy})


def retrying(retries: int) -> Any:
    """Returns obstore's settings for requests that it sends again by itself."""
    return {"max_retries": retries, "retry_timeout": timedelta(seconds=60)}


def _address(properties: Properties, name: str) -> str | None:
    said = properties.get(name) or None
    return None if said is None else check_address(name, said)


def check_address(name: str, address: str) -> str:
    """Returns the address of a server. Raises PermanentStoreError where it is none."""
    if not is_address(address, "http", "https"):
        raise PermanentStoreError(f"{name} is not the address of a server", "write http://HOST:PORT or https://HOST")
    return address


def _from_connection_string(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(";") if part)
    return {_CONNECTION_STRING[name]: value for name, _, value in pairs if name in _CONNECTION_STRING}


def _renamed(properties: Properties, names: Mapping[str, str]) -> dict[str, str]:
    return {name: properties[theirs] for theirs, name in names.items() if properties.get(theirs)}


def _virtual(properties: Properties) -> bool | None:
    """Returns what was said, by PyIceberg's name or by the Java side's, which means the opposite."""
    said = _flag(properties, "s3.force-virtual-addressing")
    path = _flag(properties, "s3.path-style-access")
    return (None if path is None else not path) if said is None else said


def _flag(properties: Properties, name: str) -> bool | None:
    said = properties.get(name, "").strip().lower()
    if said not in ("", *_TRUE, *_FALSE):
        raise PermanentStoreError(f"{name} is {said!r}", "write true or false")
    return said in _TRUE if said else None


def _seconds(properties: Properties, name: str, default: float) -> float:
    said = properties.get(name, "").strip()
    try:
        seconds = float(said) if said else default
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 86_400:
        raise PermanentStoreError(f"{name} is {said!r}", "write a number of seconds")
    return seconds
