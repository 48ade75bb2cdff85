"""Buckets and memory, by obstore.

obstore keeps names literally in buckets (`%20`, `+`, `#`, `?` and letters of any script come back as they were), but
drops a slash at the end and has no word for a doubled slash: such keys are refused by name here, because reading or
deleting the object next door would be worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)
from obstore.store import AzureStore, GCSStore, MemoryStore, ObjectStore, from_url

from firnline.errors import AlreadyExists, NoSuchBucket, ObjectChanged, ObjectNotFound, PermanentStoreError, StoreError
from firnline.ports.stores import ObjectMeta, TaggedObject
from firnline.stores.failures import code_in, failure, is_silence, no_bucket, plain, unreachable
from firnline.stores.keys import Key, object_name
from firnline.stores.settings import (
    CONNECT_TIMEOUT_S,
    REQUEST_TIMEOUT_S,
    Properties,
    azure_settings,
    gcs_settings,
    http_options,
    retrying,
)

if TYPE_CHECKING:
    from firnline.stores.s3.places import S3Place


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


_REMOTE = ("s3", "gs", "abfs", "az")
PAGE_RETRIES = 4
"""Retries of a listing's pages, which nobody above can ask for again. Everything else is one request per call: a
conditional write that was sent twice could fail against itself.
"""
_STATUS_OF = {PermissionDeniedError: "403", UnauthenticatedError: "401"}
_HOPELESS = (InvalidPathError, UnknownConfigurationKeyError, ValueError)
_SURELY_MISSING = ("NoSuchKey", "BlobNotFound")
_memories: dict[str, MemoryStore] = {}


class Buckets:
    """What obstore reaches, to read and to write; opens each bucket once. A pickled copy opens its own.

    `properties` are a catalog's, by PyIceberg's names, and hold for every bucket.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self._properties = dict(properties or {})
        self._s3: S3Place | None = None
        self._open: dict[tuple[str, str, int], ObjectStore] = {}
        self._opening = Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"properties": self._properties}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def get(self, key: Key) -> bytes:
        with self.asking(key):
            return bytes(obstore.get(self.opened(key), object_name(key)).bytes())

    def head(self, key: Key) -> ObjectMeta:
        with self.asking(key):
            return _meta(key.text, obstore.head(self.opened(key), object_name(key)))

    def list(self, key: Key) -> Iterator[ObjectMeta]:
        folder = object_name(key)
        prefix = key.text if key.text.endswith("/") else key.text + "/"
        skip = len(folder.rstrip("/")) + 1 if folder else 0
        with failing(key, missing=StoreError):
            for chunk in obstore.list(self.opened(key, PAGE_RETRIES), prefix=folder):
                for found in chunk:
                    yield _meta(prefix + found["path"][skip:], found)

    def names(self, key: Key) -> Sequence[str]:
        folder = object_name(key).rstrip("/")
        with failing(key, missing=StoreError):
            found = obstore.list_with_delimiter(self.opened(key, PAGE_RETRIES), prefix=folder)
        below = (each["path"].removeprefix(folder).removeprefix("/") for each in found["objects"])
        return [name for name in below if name]

    def links(self, key: Key) -> Sequence[str]:
        """Returns nothing: buckets have no links."""
        return ()

    def put(self, key: Key, data: bytes) -> None:
        with failing(key, missing=NoSuchBucket):
            obstore.put(self.opened(key), object_name(key), data)

    def put_if_absent(self, key: Key, data: bytes) -> None:
        with failing(key, missing=NoSuchBucket):
            obstore.put(self.opened(key), object_name(key), data, mode="create", use_multipart=False)

    def get_tagged(self, key: Key) -> TaggedObject:
        with self.asking(key):
            found = obstore.get(self.opened(key), object_name(key))
            return TaggedObject(bytes(found.bytes()), found.meta["e_tag"], found.meta["version"])

    def put_if_match(self, key: Key, data: bytes, seen: TaggedObject) -> None:
        with failing(key, missing=ObjectChanged):
            told = {"e_tag": seen.tag, "version": seen.generation}
            matching: Any = {name: value for name, value in told.items() if value is not None}
            if not matching:
                raise PermanentStoreError(f"the store tells no tag of {key.text!r}", "it cannot replace what was read")
            obstore.put(self.opened(key), object_name(key), data, mode=matching, use_multipart=False)

    def opened(self, key: Key, retries: int = 0) -> ObjectStore:
        """Returns the store that holds this key, the same one every time."""
        with self._opening:
            at = (*key.home, retries)
            if at not in self._open:
                self._open[at] = self._open_new(*at)
            return self._open[at]

    def s3(self) -> S3Place:
        """Returns the S3 behind every s3:// location."""
        with self._opening:
            return self._s3_place()

    def _s3_place(self) -> S3Place:
        from firnline.stores.s3.places import open_s3

        self._s3 = self._s3 or open_s3(self._properties)
        return self._s3

    def _open_new(self, scheme: str, authority: str, retries: int) -> ObjectStore:
        if scheme == "memory":
            return memory(authority)
        if scheme not in _REMOTE:
            known = ", ".join(("file", "memory", *_REMOTE))
            raise PermanentStoreError(f"no store for {scheme}:// is known", f"known are {known}")
        if scheme == "s3":
            return self._s3_place().bucket(authority, retries)
        return open_other(scheme, authority, self._properties, retries)

    @contextmanager
    def asking(self, key: Key) -> Iterator[None]:
        """Makes sure that a missing object is missing from a bucket that exists and knows us.

        An answer to HEAD has no words, and servers were seen to say 404 to a stranger: then a listing must tell.
        """
        try:
            with failing(key):
                yield
        except ObjectNotFound as missing:
            if key.scheme != "memory" and code_in(str(missing.__cause__)) not in _SURELY_MISSING:
                self._look_into_bucket(key)
            raise

    def _look_into_bucket(self, key: Key) -> None:
        with failing(key, missing=NoSuchBucket):
            next(iter(obstore.list(self.opened(key, PAGE_RETRIES), prefix="_firnline", chunk_size=1)), None)


def memory(name: str) -> MemoryStore:
    """Returns this process's memory of that name, empty at first."""
    return _memories.setdefault(name, MemoryStore())


def _meta(spelled: str, found: Any) -> ObjectMeta:
    modified_ms = round(found["last_modified"].timestamp() * 1000)
    return ObjectMeta(spelled, found["size"], modified_ms, found["e_tag"])


@contextmanager
def failing(key: Key, missing: type[StoreError] = ObjectNotFound) -> Iterator[None]:
    """Tells obstore's failures apart, by the code in the store's own answer where there is one."""
    try:
        yield
    except FileNotFoundError as error:
        told = failure(code_in(str(error)), key, str(error))
        if isinstance(told, PermanentStoreError):
            raise told from error
        if missing is NoSuchBucket:
            raise no_bucket(key) from error
        raise missing(f"no object {key.text!r}") from error
    except PreconditionError as error:
        raise ObjectChanged(f"{key.text!r} was written by another process") from error
    except AlreadyExistsError as error:
        raise AlreadyExists(f"{key.text!r} exists already") from error
    except _HOPELESS as error:
        raise PermanentStoreError(f"{key.text!r} failed: {plain(str(error))}") from error
    except (BaseError, OSError) as error:
        raise _told(key, error) from error


def _told(key: Key, error: Exception) -> StoreError:
    message = str(error)
    if is_silence(message.partition("\n")[0]):
        return unreachable(key, message)
    code = code_in(message)
    by_type = next((status for kind, status in _STATUS_OF.items() if isinstance(error, kind)), "")
    return failure(by_type if not code or (code.isdigit() and by_type) else code, key, message)
