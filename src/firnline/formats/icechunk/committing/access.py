"""Where the icechunk library finds a repository: firnline's store settings in the library's own words.

The library has a client of its own. A setting that it has no word for is refused and never left out: it would reach
another server, or come as another user.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from firnline.errors import RefusedForSafety, UnsupportedFormat
from firnline.extras import how_to_get
from firnline.model.locations import parse_location

_NO_WORD = ("profile-name", "role-arn", "proxy-uri")
_TRUE = ("true", "1", "yes", "on", "t", "y")
_TRIES = 3
_SECONDS = 20
"""As long as firnline's own requests wait: shorter than the margin of a lease."""


def library() -> Any:
    """Returns the icechunk module. Raises UnsupportedFormat where it is not installed.

    It logs to standard output, between the lines of ours that a program reads: where nobody else set that up, it is
    silent. What goes wrong is raised all the same.
    """
    silent = "icechunk" not in sys.modules and "ICECHUNK_LOG" not in os.environ
    try:
        import icechunk
    except ImportError as missing:
        raise UnsupportedFormat(
            f"an icechunk repository is not changed here: {missing}", hint=how_to_get("icechunk")
        ) from missing
    if silent:
        icechunk.set_logs_filter("off")
    return icechunk


def refuse_old_library(spec: int) -> None:
    """Raises UnsupportedFormat where the installed library does not know a repository's version of the format: it would
    say that there is no repository.
    """
    version = str(library().__version__)
    if int(version.partition(".")[0]) < spec:
        raise UnsupportedFormat(
            f"icechunk {version} does not know version {spec} of the format",
            hint="nothing was changed; install icechunk 2 or later, which needs Python 3.12 or later",
        )


def few_retries() -> Any:
    """Returns the library's settings for requests that it sends again: each of the usual ten may come half a minute
    after the lease was asked for. All else is as the repository itself says.
    """
    module = library()
    retries = module.StorageRetriesSettings(max_tries=_TRIES, initial_backoff_ms=100, max_backoff_ms=1000)
    return module.RepositoryConfig(storage=module.StorageSettings(retries=retries))


def storage_at(location: str, settings: Mapping[str, str]) -> Any:
    """Returns the library's storage. Raises UnsupportedFormat for a place, RefusedForSafety for a setting that the
    library cannot be told.
    """
    scheme = parse_location(location).scheme
    if scheme == "file":
        return library().local_filesystem_storage(_path(location))
    if scheme == "s3":
        return library().s3_storage(**s3_words(location, settings))
    raise UnsupportedFormat(
        f"icechunk repositories are changed in local folders and in S3 only, not at {location}",
        hint="nothing was changed",
    )


def s3_words(location: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """Returns what `icechunk.s3_storage` is called with."""
    for name in _NO_WORD:
        if _said(settings, name):
            raise RefusedForSafety(
                f"the icechunk library knows no setting for s3.{name}",
                hint="nothing was changed; set s3.access-key-id and s3.secret-access-key, or AWS_* variables",
            )
    bucket, _, prefix = location.partition("://")[2].partition("/")
    endpoint = settings.get("s3.endpoint") or _set("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    region = _said(settings, "region") or _set("AWS_REGION", "AWS_DEFAULT_REGION")
    return {
        "bucket": bucket,
        "prefix": prefix.strip("/") or None,
        "region": region or ("us-east-1" if endpoint else None),
        "endpoint_url": endpoint,
        "allow_http": (endpoint or "").lower().startswith("http://"),
        "force_path_style": not _is_virtual(settings, bool(endpoint)),
        "network_stream_timeout_seconds": _SECONDS,
        **_credentials(settings),
    }


def _credentials(settings: Mapping[str, str]) -> dict[str, Any]:
    if _flag(settings, "s3.anonymous"):
        return {"anonymous": True}
    key = _said(settings, "access-key-id")
    if key is None:
        return {"from_env": True}
    return {
        "access_key_id": key,
        "secret_access_key": _said(settings, "secret-access-key"),
        "session_token": _said(settings, "session-token"),
    }


def _is_virtual(settings: Mapping[str, str], has_endpoint: bool) -> bool:
    """Tells whether buckets are host names: by PyIceberg's word, by Java's, or as firnline's own client does it."""
    said, path = _flag(settings, "s3.force-virtual-addressing"), _flag(settings, "s3.path-style-access")
    if said is None:
        return not has_endpoint if path is None else not path
    return said


def _set(*variables: str) -> str | None:
    """Returns what the environment says, as firnline's own client finds it there."""
    return next((value for name in variables if (value := os.environ.get(name))), None)


def _said(settings: Mapping[str, str], name: str) -> str | None:
    return settings.get(f"s3.{name}") or settings.get(f"client.{name}") or None


def _flag(settings: Mapping[str, str], name: str) -> bool | None:
    said = settings.get(name, "").strip().lower()
    return said in _TRUE if said else None


def _path(location: str) -> str:
    """Returns the path as it is written: a percent sign in it is one."""
    if location.startswith("/"):
        return location
    rest = location.partition(":")[2]
    return "/" + rest.removeprefix("//").partition("/")[2] if rest.startswith("//") else rest
