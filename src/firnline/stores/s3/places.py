"""Opening an S3: one set of credentials and one address, for obstore and for boto3 alike.

Loaded only where an s3:// location is met: boto3 takes longer to import than a small local run takes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import boto3
import botocore.config
import botocore.exceptions
import botocore.session
from botocore import UNSIGNED
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from obstore.store import S3Store

from firnline.errors import BadCredentials, PermanentStoreError
from firnline.policy.limits import MOST_AT_ONCE
from firnline.stores.s3.signed import S3Wire
from firnline.stores.settings import Properties, S3Settings, check_address, http_options, retrying, s3_settings

_LOOK_AGAIN = timedelta(minutes=5)
_AWS = (".amazonaws.com", ".amazonaws.com.cn")
_CONNECTIONS = MOST_AT_ONCE


class S3Place:
    """One S3, opened once: a boto3 client, and buckets by obstore with the same credentials and address."""

    def __init__(self, settings: S3Settings) -> None:
        self.settings = settings
        self._credentials = _credentials(settings)
        self.client = _client(settings, self._credentials)
        self.wire = S3Wire(self.client, self._credentials)

    @property
    def endpoint(self) -> str | None:
        """The server's address; None for AWS itself. Also found in AWS_ENDPOINT_URL and in profiles."""
        address = str(self.client.meta.endpoint_url)
        host = urlsplit(address).hostname or ""
        own = self.settings.endpoint is None and host.endswith(_AWS)
        return None if own else check_address("the endpoint of S3", address)

    def bucket(self, name: str, retries: int) -> S3Store:
        """Returns a bucket by obstore. Credentials are asked for again from time to time: they may be refreshed."""
        settings, endpoint = self.settings, self.endpoint
        virtual = settings.addressing(endpoint is not None) == "virtual"
        config: dict[str, Any] = {"region": self.client.meta.region_name, "virtual_hosted_style_request": virtual}
        if endpoint is not None:
            config["endpoint"] = _with_bucket(endpoint, name) if virtual else endpoint
        if self._credentials is None:
            config["skip_signature"] = True
        options: Any = http_options(endpoint, settings.connect_timeout_s, settings.request_timeout_s, settings.proxy)
        given: Any = config
        provider: Any = None if self._credentials is None else _provider(self._credentials)
        return S3Store(
            name, config=given, client_options=options, retry_config=retrying(retries), credential_provider=provider
        )


def open_s3(properties: Properties) -> S3Place:
    """Returns the S3 of a catalog. Raises BadCredentials where no credentials are found anywhere."""
    try:
        return _opened(s3_settings(properties), _environment())
    except (botocore.exceptions.BotoCoreError, ValueError) as error:
        raise PermanentStoreError(f"S3 cannot be set up: {error}", "check the s3.* settings of the catalog") from error


def _environment() -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))


@lru_cache(maxsize=8)
def _opened(settings: S3Settings, environment: tuple[tuple[str, str], ...]) -> S3Place:
    """Returns one place for equal settings in an equal environment: to make a client takes a quarter of a second."""
    return S3Place(settings)


def _with_bucket(endpoint: str, bucket: str) -> str:
    parts = urlsplit(endpoint)
    return parts._replace(netloc=f"{bucket}.{parts.netloc}").geturl()


def _credentials(settings: S3Settings) -> Any:
    """Returns botocore's credentials, refreshing ones as they are; None for anonymous access."""
    if settings.anonymous:
        return None
    session = boto3.Session(
        aws_access_key_id=settings.access_key_id,
        aws_secret_access_key=settings.secret_access_key,
        aws_session_token=settings.session_token,
        profile_name=settings.profile,
    )
    found = session.get_credentials()
    if found is None:
        raise BadCredentials(
            "no credentials for S3 are configured",
            "set s3.access-key-id and s3.secret-access-key, AWS_* variables or a profile; or s3.anonymous=true",
        )
    return found if settings.role_arn is None else _assumed(settings, session, found)


def _assumed(settings: S3Settings, session: Any, source: Any) -> Any:
    def client(*args: Any, **options: Any) -> Any:
        return session.client(*args, region_name=settings.region or session.region_name or "us-east-1", **options)

    fetcher = AssumeRoleCredentialFetcher(
        client, source, settings.role_arn, extra_args={"RoleSessionName": settings.role_session_name}
    )
    return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")


def _client(settings: S3Settings, credentials: Any) -> Any:
    """Returns boto3's client. It never retries by itself: the throttle must see every refusal."""
    keys = _given_keys(settings)
    session = _session(settings.profile, credentials) if keys is None else _shared_session(settings.profile)
    with _making:
        has_endpoint = settings.endpoint is not None or not _is_aws(session)
        region = settings.region or session.region_name or "us-east-1"
        config = _config(settings, has_endpoint, signs=credentials is not None)
        return session.client("s3", region_name=region, endpoint_url=settings.endpoint, config=config, **(keys or {}))


def _config(settings: S3Settings, has_endpoint: bool, signs: bool) -> botocore.config.Config:
    return botocore.config.Config(
        connect_timeout=settings.connect_timeout_s,
        read_timeout=settings.request_timeout_s,
        retries={"total_max_attempts": 1},
        max_pool_connections=_CONNECTIONS,
        proxies=None if settings.proxy is None else {"http": settings.proxy, "https": settings.proxy},
        signature_version=None if signs else UNSIGNED,
        s3={"addressing_style": settings.addressing(has_endpoint)},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )


def _given_keys(settings: S3Settings) -> dict[str, str | None] | None:
    """Returns the keys that a client is made with; None where they come from elsewhere, or refresh themselves."""
    if settings.anonymous or settings.role_arn is not None or not settings.access_key_id:
        return None
    return {
        "aws_access_key_id": settings.access_key_id,
        "aws_secret_access_key": settings.secret_access_key,
        "aws_session_token": settings.session_token,
    }


def _session(profile: str | None, credentials: Any) -> boto3.Session:
    inner = botocore.session.Session(profile=profile)
    if credentials is not None:
        inner._credentials = credentials
    return boto3.Session(botocore_session=inner)


_making = Lock()
"""A session makes one client at a time."""


def _shared_session(profile: str | None) -> boto3.Session:
    """Returns a session for clients that are given their keys, the same one every time.

    1. A catalog hands out keys of their own for each table, and others with each look at it.
    2. A session reads all that botocore knows of S3: half a second, and 12 MB. A lake of a thousand tables has no room.
    """
    return _session_in(profile, _environment())


@lru_cache(maxsize=4)
def _session_in(profile: str | None, environment: tuple[tuple[str, str], ...]) -> boto3.Session:
    return _session(profile, None)


def _is_aws(session: Any) -> bool:
    """Tells whether the environment and the profile name no server of their own."""
    probe = session.client("s3", region_name=session.region_name or "us-east-1")
    return (urlsplit(str(probe.meta.endpoint_url)).hostname or "").endswith(_AWS)


def _provider(credentials: Any) -> Callable[[], dict[str, Any]]:
    def current() -> dict[str, Any]:
        frozen = credentials.get_frozen_credentials()
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": datetime.now(UTC) + _LOOK_AGAIN,
        }

    return current
