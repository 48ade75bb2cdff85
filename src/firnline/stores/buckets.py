"""Buckets and memory, by obstore.

obstore keeps names literally in buckets (`%20`, `+`, `#`, `?` and letters of any script come back as they
were), but drops a slash at the end and has no word for a doubled slash: such keys are refused by name here,
because reading or deleting the object next door would be worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)
from obstore.store import MemoryStore, ObjectStore, from_url

from firnline.errors import AlreadyExists, ObjectNotFound, StoreError
from firnline.ports.stores import ObjectMeta
from firnline.stores.failures import PermanentStoreError
from firnline.stores.keys import Key

_REMOTE = ("s3", "gs", "abfs", "az")
_CONNECTION = frozenset(
    [
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "timeout",
        "user_agent",
        "http1_only",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_url",
        "proxy_ca_certificate",
        "proxy_excludes",
    ]
)
_HOPELESS = (
    InvalidPathError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
    ValueError,
)
_memories: dict[str, MemoryStore] = {}
_opening = Lock()


class Buckets:
    """Every verb on what obstore reaches; opens each bucket once. A pickled copy opens its own.

    `options` are obstore's settings by scheme (`s3`) or by bucket (`s3://bucket`), where the bucket's win.
    """

    def __init__(self, options: Mapping[str, Mapping[str, str]]) -> None:
        self._options = {home: dict(values) for home, values in options.items()}
        self._open: dict[tuple[str, str], ObjectStore] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_open": {}}

    def get(self, key: Key) -> bytes:
        with _failing(key):
            return bytes(obstore.get(self.opened(key), _name(key)).bytes())

    def head(self, key: Key) -> ObjectMeta:
        with _failing(key):
            return _meta(key.text, obstore.head(self.opened(key), _name(key)))

    def list(self, key: Key) -> Iterator[ObjectMeta]:
        folder = _name(key)
        prefix = key.text if key.text.endswith("/") else key.text + "/"
        skip = len(folder.rstrip("/")) + 1 if folder else 0
        with _failing(key, missing=StoreError):
            for chunk in obstore.list(self.opened(key), prefix=folder):
                for found in chunk:
                    yield _meta(prefix + found["path"][skip:], found)

    def put(self, key: Key, data: bytes) -> None:
        with _failing(key):
            obstore.put(self.opened(key), _name(key), data)

    def put_if_absent(self, key: Key, data: bytes) -> None:
        with _failing(key):
            obstore.put(self.opened(key), _name(key), data, mode="create", use_multipart=False)

    def delete(self, key: Key) -> None:
        """Deletes one object. Raises ObjectNotFound where there is none: obstore alone would not tell."""
        with _failing(key):
            bucket = self.opened(key)
            obstore.head(bucket, _name(key))
            obstore.delete(bucket, _name(key))

    def opened(self, key: Key) -> ObjectStore:
        """Returns the store that holds this key, the same one every time."""
        with _opening:
            if key.home not in self._open:
                self._open[key.home] = self._open_new(*key.home)
            return self._open[key.home]

    def _open_new(self, scheme: str, authority: str) -> ObjectStore:
        if scheme == "memory":
            return memory(authority)
        if scheme not in _REMOTE:
            known = ", ".join(("file", "memory", *_REMOTE))
            raise PermanentStoreError(f"no store for {scheme}:// is known", f"known are {known}")
        settings = self._options.get(scheme, {}) | self._options.get(f"{scheme}://{authority}", {})
        return _remote(f"{scheme}://{authority}", settings)


def _remote(url: str, settings: Mapping[str, str]) -> ObjectStore:
    """Returns the opened bucket. obstore panics on a setting of the connection among those of the bucket."""
    connection: Any = {name: value for name, value in settings.items() if name in _CONNECTION}
    bucket: Any = {name: value for name, value in settings.items() if name not in _CONNECTION}
    # These retries also cover the pages of a listing, which nobody above can ask for again.
    return from_url(url, config=bucket, client_options=connection, retry_config={"max_retries": 4})


def memory(name: str) -> MemoryStore:
    """Returns this process's memory of that name, empty at first."""
    return _memories.setdefault(name, MemoryStore())


def _name(key: Key) -> str:
    """Returns the object's name in its bucket."""
    if "//" in key.path:
        raise PermanentStoreError(f"{key.text!r} has a doubled slash, which cannot be named in {key.scheme}://")
    return key.path.removeprefix("/")


def _meta(spelled: str, found: Any) -> ObjectMeta:
    modified_ms = round(found["last_modified"].timestamp() * 1000)
    return ObjectMeta(spelled, found["size"], modified_ms, found["e_tag"])


@contextmanager
def _failing(key: Key, missing: type[StoreError] = ObjectNotFound) -> Iterator[None]:
    """Tells obstore's failures apart. The first line of its messages says it all; pages follow."""
    try:
        yield
    except FileNotFoundError as error:
        raise missing(f"no object {key.text!r}") from error
    except AlreadyExistsError as error:
        raise AlreadyExists(f"{key.text!r} exists already") from error
    except _HOPELESS as error:
        raise PermanentStoreError(f"{key.text!r} failed: {_first_line(error)}") from error
    except (BaseError, OSError) as error:
        raise StoreError(f"{key.text!r} failed: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
