"""Asking a store what it really does, with objects of our own that are gone again afterwards, and what its bucket does
with deletes.

Servers that call themselves S3 differ in just what matters here: one ignores If-Match on a delete and deletes, another
lets two conditional writes win. So every promise that a run stands on is tried before it is relied on.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from firnline.errors import AccessDenied, AlreadyExists, ObjectChanged, ObjectNotFound, StoreError, Unreachable
from firnline.model.locations import join, parse_location
from firnline.ports.delete import Doomed, Fate
from firnline.ports.probe import ProbeAnswer, StoreVerdicts, Surroundings, no, unknown, yes
from firnline.ports.stores import ReadWrite, TaggedObject
from firnline.stores.buckets import Buckets
from firnline.stores.delete import DELETE_PATIENCE, ObjectDelete
from firnline.stores.delete_batches import Answer
from firnline.stores.failures import HOPELESS
from firnline.stores.keys import folder_key, object_key
from firnline.stores.objects import ObjectStores
from firnline.stores.throttle import Throttle
from firnline.stores.wrappers.paced import Paced
from firnline.stores.wrappers.retry import Retrying, persist

RACERS = 4
LARGEST_PROBED_SKEW_MS = 60_000
_CONTENT = b"firnline"
_STALE = '"00000000000000000000000000000000"'
_not_tried = unknown("not tried: nothing could be written")


@dataclass
class Trial:
    """One probing: everything it writes lies in one new folder."""

    folder: str
    properties: Mapping[str, str]
    buckets: Buckets
    throttle: Throttle

    def __post_init__(self) -> None:
        self.store = Retrying(Paced(ObjectStores(self.properties), self.throttle))
        self.deleter = ObjectDelete(self.properties)
        self.written: list[str] = []

    def run(
        self,
        place: str,
        doomed: Sequence[str],
        replaces: bool,
        surroundings: Surroundings,
        now: Callable[[], float],
    ) -> StoreVerdicts:
        listing = _tried("listed", lambda: next(self.store.list(self.folder), None))
        before = now()
        put = _tried("written", lambda: self.store.put(self._new("object"), _CONTENT))
        after = now()
        get = _tried("read back", lambda: self.store.get(join(self.folder, "object"))) if put else _not_tried
        clock, skew = self._clock(before, after) if put else (_not_tried, None)
        return StoreVerdicts(
            place=place,
            list=listing,
            get=get,
            put=put,
            put_if_absent=self._put_if_absent() if put else _not_tried,
            put_if_match=self._put_if_match(replaces) if put else _not_tried,
            if_match_delete=self.if_match() if put else _not_tried,
            delete=self._delete(put, doomed),
            clock=clock,
            surroundings=surroundings,
            skew_ms=skew,
        )

    def clean_up(self) -> None:
        """Removes what was written; what cannot be removed is a few bytes in our own folder."""
        if self.written:
            with suppress(StoreError):
                self.deleter.delete([Doomed(key) for key in self.written])

    def _new(self, name: str) -> str:
        key = join(self.folder, name)
        self.written.append(key)
        return key

    def _clock(self, before: float, after: float) -> tuple[ProbeAnswer, int | None]:
        """Compares what the store says of an object's time with ours; S3 tells whole seconds."""
        try:
            modified = self.store.head(join(self.folder, "object")).modified_ms
        except StoreError as error:
            return unknown(str(error)), None
        if modified is None:
            return unknown("the store does not say when an object was written"), None
        ahead = max(0, modified - round(after * 1000)) or min(0, modified + 1_000 - round(before * 1000))
        said = "the store's clock and ours agree" if not ahead else f"the store's clock is {ahead:+,} ms from ours"
        return (yes(said) if abs(ahead) <= LARGEST_PROBED_SKEW_MS else no(said)), ahead

    def _put_if_absent(self) -> ProbeAnswer:
        """Tries it on an object that exists, then in a race of threads."""
        key, bare = join(self.folder, "object"), ObjectStores(self.properties)
        try:
            persist(lambda: bare.put_if_absent(key, b"another"), DELETE_PATIENCE)
        except AlreadyExists:
            # An answer may have got lost before this one: what the object says counts.
            if self.store.get(key) == _CONTENT:
                return self._race()
        except StoreError as error:
            return unknown(f"not answered: {error}")
        return no("a write that must not replace an object replaced it")

    def _race(self) -> ProbeAnswer:
        key = self._new("race")

        def enter(racer: int) -> bool:
            try:
                self.store.put_if_absent(key, f"{racer} {secrets.token_hex(8)}".encode())
            except AlreadyExists:
                return False
            return True

        try:
            with ThreadPoolExecutor(RACERS) as racers:
                winners = sum(racers.map(enter, range(RACERS)))
        except StoreError as error:
            return unknown(f"not answered: {error}")
        if winners == 1:
            return yes(f"an object that exists was not replaced; of {RACERS} racing writers one won")
        return no(f"of {RACERS} racing writers {winners} won")

    def _put_if_match(self, asked: bool) -> ProbeAnswer:
        """Tries to replace an object as it was read, then as it no longer is, then in a race of threads.

        What the object says counts: the answer to a write that landed may have got lost.
        """
        if not asked:
            return unknown("not asked")
        key = self._new("replaced")
        try:
            self.store.put(key, _CONTENT)
            first = self.store.get_tagged(key)
            self._replace(key, b"second", first)
            if self.store.get(key) != b"second":
                return no("a write with the right ETag was refused")
            if self._replace(key, b"third", first) or self.store.get(key) != b"second":
                return no("a write with a stale ETag replaced the object")
            return self._race_to_replace(key)
        except StoreError as error:
            return unknown(f"not answered: {error}")

    def _replace(self, key: str, data: bytes, seen: TaggedObject) -> bool:
        try:
            self.store.put_if_match(key, data, seen)
        except ObjectChanged:
            return False
        return True

    def _race_to_replace(self, key: str) -> ProbeAnswer:
        """Counts who was told to have won: none where the winner's answer got lost, but never two."""
        seen = self.store.get_tagged(key)
        with ThreadPoolExecutor(RACERS) as racers:
            told = racers.map(lambda racer: self._replace(key, f"racer {racer}".encode(), seen), range(RACERS))
            winners = sum(told)
        if winners > 1 or self.store.get(key) == seen.data:
            return no(f"of {RACERS} racing writers {winners} replaced the object")
        return yes(f"a write with a stale ETag was refused; of {RACERS} racing writers one won")

    def if_match(self) -> ProbeAnswer:
        """Tries a delete with a stale ETag, which must leave the object, and one with its own, which must not."""
        key = object_key(self._new("condition"))
        if key.scheme != "s3":
            return unknown("the client for this store has no conditional delete")
        from firnline.stores.s3.deletes import delete_single

        self.store.put(key.text, _CONTENT)
        client, etag = self.buckets.s3().client, self.store.head(key.text).etag
        stale = _answered(lambda: delete_single(client, key, _STALE))
        try:
            self.store.head(key.text)
        except ObjectNotFound:
            return no("a delete with a stale ETag removed the object")
        if stale.fate is not Fate.CHANGED:
            return no(f"a delete with a stale ETag was answered: {stale.fate} {stale.error}".rstrip())
        right = _answered(lambda: delete_single(client, key, etag))
        if right.fate not in (Fate.DELETED, Fate.MISSING):
            return no(f"a delete with the right ETag was answered: {right.fate} {right.error}".rstrip())
        return yes("a delete with a stale ETag was refused, one with the right ETag was not")

    def _delete(self, put: ProbeAnswer, doomed: Sequence[str]) -> ProbeAnswer:
        """Deletes our own object, then asks in the doomed folders."""
        if put:
            said = self.deleter.delete([Doomed(join(self.folder, "object"))])[0]
            if said.fate is not Fate.DELETED:
                return no(f"not permitted in {self.folder}: {said.error}")
        return self.delete_in(doomed)

    def delete_in(self, doomed: Sequence[str]) -> ProbeAnswer:
        """Deletes in each folder a name that never existed: it needs the same permission as any other."""
        for folder in doomed:
            refused = self._never_there(join(folder, f"_firnline-probe-{secrets.token_hex(8)}"))
            if refused:
                return no(f"not permitted in {folder}: {refused}")
        return yes("an object was deleted" + (f"; also permitted in {', '.join(doomed)}" if doomed else ""))

    def _never_there(self, text: str) -> str:
        """Returns why nothing could be deleted at a key that never existed; nothing where it could."""
        key = object_key(text)
        if key.scheme != "s3":
            return self.deleter.delete([Doomed(text)])[0].error
        from firnline.stores.s3.probing import delete_one, take_back

        client = self.buckets.s3().client
        try:
            said = persist(lambda: delete_one(client, key), DELETE_PATIENCE)
        except StoreError as error:
            return error.message
        if said.get("DeleteMarker"):  # a bucket with versions notes even this; take the note back where we may
            take_back(client, key, said["VersionId"])
        return ""


def _answered(call: Callable[[], Answer]) -> Answer:
    """Returns the answer of a delete, asked for again while it says nothing."""
    for pause in DELETE_PATIENCE.pauses():
        answer = call()
        if not answer.again:
            return answer
        time.sleep(pause)
    return call()


def _tried(what: str, call: Callable[[], Any]) -> ProbeAnswer:
    """Returns whether something is permitted. Raises where nobody can tell: no answer, no bucket, no identity."""
    try:
        call()
    except (*HOPELESS, Unreachable):
        raise
    except AccessDenied as error:
        return no(str(error))
    except StoreError as error:
        return unknown(str(error))
    return yes(f"an object was {what}" if what != "listed" else "listed")


_OF_ITSELF = ("file", "memory")


class StoreProbe:
    """Probes the stores of one catalog's settings, no faster than they may be read."""

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        now: Callable[[], float] = time.time,
        throttle: Throttle | None = None,
    ) -> None:
        self._properties = dict(properties or {})
        self._buckets = Buckets(self._properties)
        self._now = now
        self._throttle = throttle or Throttle()

    def surroundings(self, location: str) -> Surroundings:
        key = folder_key(location)
        if key.scheme in _OF_ITSELF:
            return Surroundings(no("no versions are kept"), no("there is no object lock"))
        if key.scheme != "s3":
            return Surroundings(unknown("cannot be asked here"), unknown("cannot be asked here"))
        from firnline.stores.s3.probing import locked, versioned

        client, lane = self._buckets.s3().client, self._throttle.reads(location)
        with self._throttle.asking(lane):
            versions = versioned(client, key)
        with self._throttle.asking(lane):
            return Surroundings(versions, locked(client, key))

    def probe(self, folder: str, doomed: Sequence[str] = (), replaces: bool = False) -> StoreVerdicts:
        surroundings = self.surroundings(folder)
        remote = [each for each in doomed if parse_location(each).scheme not in _OF_ITSELF]
        if not remote and parse_location(folder).scheme in _OF_ITSELF:
            return _trusted(folder, surroundings)
        trial = self._trial(folder)
        if parse_location(folder).scheme in _OF_ITSELF:
            return replace(_trusted(folder, surroundings), delete=trial.delete_in(remote))
        try:
            return trial.run(folder, remote, replaces, surroundings, self._now)
        finally:
            trial.clean_up()

    def conditional_delete(self, folder: str) -> ProbeAnswer:
        """Tells whether a delete with an ETag spares any other object. Writes one and removes it again, or writes none
        where that is not permitted: each question would leave one behind.
        """
        trial = self._trial(folder)
        permitted = trial.delete_in([folder])
        try:
            return trial.if_match() if permitted else permitted
        finally:
            trial.clean_up()

    def _trial(self, folder: str) -> Trial:
        return Trial(join(folder, "probe", secrets.token_hex(8)), self._properties, self._buckets, self._throttle)


def _trusted(place: str, surroundings: Surroundings) -> StoreVerdicts:
    """Local files and memory: the operating system is asked at every call, and its promises are known."""
    own = yes("local: no probing needed")
    none = no("there are no ETags to match here")
    return StoreVerdicts(place, own, own, own, own, own, own, none, own, surroundings, 0)


_THREADS = 8
_SECONDS = 1.0
_MOST = 4_000


def reads_per_second(store: ReadWrite, folder: str, clock: Callable[[], float] = time.monotonic) -> float | None:
    """Returns the rate at which a store told of an object in the folder; None where there is none to ask for. Some
    thousand requests at most: who measures must not be the load that the budget is to keep away.
    """
    found = next(iter(store.list(folder)), None)
    if found is None:
        return None
    began = clock()

    def ask(_: int) -> int:
        asked = 0
        while clock() - began < _SECONDS and asked < _MOST // _THREADS:
            store.head(found.key)
            asked += 1
        return asked

    with ThreadPoolExecutor(_THREADS) as pool:
        asked = sum(pool.map(ask, range(_THREADS)))
    return asked / max(clock() - began, 1e-3)
