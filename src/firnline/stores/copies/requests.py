"""Requests that wait for their turn at a store and are sent again where that can help."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import obstore

from firnline.errors import AlreadyExists, BadCredentials, ObjectNotFound, PermanentStoreError, StoreError
from firnline.patience import Patience
from firnline.ports.catalogs import Still, always
from firnline.ports.stores import ObjectMeta
from firnline.stores.buckets import Buckets, failing
from firnline.stores.failures import SLOW_DOWN, code_in, code_of, failure, unreachable
from firnline.stores.keys import Key, object_name
from firnline.stores.local import LocalFiles
from firnline.stores.throttle import Lane, Throttle
from firnline.stores.wrappers.retry import persist

Answer = TypeVar("Answer")
Job = TypeVar("Job")

_MISSING = ("NoSuchKey", "404")
_TAKEN = ("PreconditionFailed", "412", "NoSuchUpload")
"""NoSuchUpload: an upload was ended already, by a request of ours whose answer got lost. Who looks sees its object."""
UNSUPPORTED = ("NotImplemented", "501")


class Unsupported(PermanentStoreError):
    """The store does not know something that the request asks for."""


class Stopped(Exception):
    """What `still` raised: no verdict on the one copy that was under way, so nothing on the way may take it for one."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(cause)
        self.cause = cause


def unmistakable(still: Still) -> Still:
    """Returns the same question, which raises Stopped where it raised anything: a lease is renewed in a store, and that
    store's failure is not the copy's.
    """

    def ask() -> None:
        try:
            still()
        except Exception as error:
            raise Stopped(error) from error

    return ask


def one_by_one(jobs: Iterable[Job], work: Callable[[Job, Still], Answer], still: Still) -> list[Answer]:
    """Returns what becomes of each job, in order. What `still` raises ends all of it, and is raised as it is."""
    sure = unmistakable(still)
    try:
        return [work(job, sure) for job in jobs]
    except Stopped as stopped:
        raise stopped.cause from None


@dataclass
class PacedRequests:
    """Sends each request of one store in its turn. Files of this machine are asked once: what fails there fails again.

    Waiting for a turn comes before `still`: a lease may run out meanwhile.
    """

    buckets: Buckets
    throttle: Throttle
    patience: Patience

    def read(self, key: Key, call: Callable[[], Answer]) -> Answer:
        return self._sent(self.throttle.reads(_folder_of(key)), key, call, always)

    def write(self, key: Key, call: Callable[[], Answer], still: Still, *, again: bool = True) -> Answer:
        """Sends what writes; `again` is for a call that can be made a second time."""
        return self._sent(self.throttle.writes(_folder_of(key)), key, call, still, again)

    def head(self, key: Key) -> ObjectMeta:
        """Returns what the store says of an object. Raises ObjectNotFound, and is sure that the bucket is there."""
        store = LocalFiles() if key.scheme == "file" else self.buckets
        return self.read(key, lambda: store.head(key))

    def there(self, key: Key) -> ObjectMeta | None:
        """Returns what lies under a name; None: nothing does, or the bucket is missing, which a write will tell."""
        try:
            return self.read(key, lambda: self._glance(key))
        except ObjectNotFound:
            return None

    def _glance(self, key: Key) -> ObjectMeta:
        if key.scheme == "file":
            return LocalFiles().head(key)
        with failing(key):
            found = obstore.head(self.buckets.opened(key), object_name(key))
            return ObjectMeta(key.text, found["size"], None, found["e_tag"])

    def _sent(self, lane: Lane, key: Key, call: Callable[[], Answer], still: Still, again: bool = True) -> Answer:
        if key.scheme == "file" or not again:
            return self._once(lane, call, still)
        return persist(lambda: self._once(lane, call, still), self.patience)

    def _once(self, lane: Lane, call: Callable[[], Answer], still: Still) -> Answer:
        with self.throttle.turn(lane):
            pause = self.throttle.reserve(lane, 1)
            if pause > 0:
                time.sleep(pause)
            still()
            try:
                answer = call()
            except StoreError as error:
                if _is_slow(error):
                    self.throttle.slowed(lane)
                raise
        self.throttle.went_well(lane)
        return answer


def _is_slow(error: StoreError) -> bool:
    """Tells whether the store asked for less: botocore has its answer, obstore only words of it."""
    cause = error.__cause__
    answered = isinstance(getattr(cause, "response", None), dict)
    return (code_of(cause) if answered else code_in(str(cause))) in SLOW_DOWN


def _folder_of(key: Key) -> str:
    return key.text.rpartition("/")[0]


@contextmanager
def refusing(key: Key) -> Iterator[None]:
    """Tells botocore's failures apart, as obstore's are."""
    import botocore.exceptions as of_botocore

    try:
        yield
    except of_botocore.ClientError as error:
        raise _refused(code_of(error), key, str(error.response.get("Error", {}).get("Message", ""))) from error
    except (of_botocore.NoCredentialsError, of_botocore.CredentialRetrievalError) as error:
        raise BadCredentials(f"no credentials for {key.authority}: {error}", "configure credentials") from error
    except of_botocore.BotoCoreError as error:
        raise unreachable(key, str(error)) from error


def _refused(code: str, key: Key, said: str) -> StoreError:
    if code in _MISSING:
        return ObjectNotFound(f"no object {key.text!r}")
    if code in _TAKEN:
        return AlreadyExists(f"{key.text!r} exists already")
    if code in UNSUPPORTED:
        return Unsupported(f"{key.text!r} failed: {code}: {said}")
    return failure(code, key, f"{code}: {said}")
