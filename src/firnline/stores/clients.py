"""Opening Google's and Microsoft's buckets, by obstore."""

from __future__ import annotations

from typing import Any

from obstore.store import AzureStore, GCSStore, ObjectStore, from_url

from firnline.stores.settings import (
    CONNECT_TIMEOUT_S,
    REQUEST_TIMEOUT_S,
    Properties,
    azure_settings,
    gcs_settings,
    http_options,
    retrying,
)


def open_other(scheme: str, bucket: str, properties: Properties, retries: int) -> ObjectStore:
    """Returns a bucket of Google's or Microsoft's; what is not set comes from the environment."""
    if scheme == "gs":
        return _gcs(bucket, gcs_settings(properties), retries)
    settings = azure_settings(properties)
    options: Any = http_options(settings.get("endpoint"), CONNECT_TIMEOUT_S, REQUEST_TIMEOUT_S, None)
    given: Any = settings
    if scheme == "az":
        return AzureStore(bucket, config=given, client_options=options, retry_config=retrying(retries))
    return from_url(f"abfss://{bucket}", config=given, client_options=options, retry_config=retrying(retries))


def _gcs(bucket: str, settings: dict[str, str], retries: int) -> GCSStore:
    options: Any = http_options(settings.get("base_url"), CONNECT_TIMEOUT_S, REQUEST_TIMEOUT_S, None)
    token = settings.pop("bearer_token", None)
    given: Any = settings
    provider: Any = None if token is None else (lambda: {"token": token, "expires_at": None})
    return GCSStore(
        bucket, config=given, client_options=options, retry_config=retrying(retries), credential_provider=provider
    )
