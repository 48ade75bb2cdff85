"""Deleting the objects that a written list names. Only purge code is given these."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import obstore

from firnline.errors import ObjectNotFound, PermanentStoreError, StoreError
from firnline.patience import Patience
from firnline.ports.delete import DeleteOutcome, Doomed, Fate, MaySend, always
from firnline.stores.buckets import Buckets
from firnline.stores.delete_batches import Answer
from firnline.stores.failures import HOPELESS, SLOW_DOWN, code_in
from firnline.stores.keys import Key, object_key, object_name
from firnline.stores.local import LocalFiles
from firnline.stores.throttle import Lane, Throttle

if TYPE_CHECKING:
    from firnline.stores.delete_batches import Bulk, Numbered

DELETE_PATIENCE = Patience(attempts=12, base_delay_s=0.1, max_delay_s=2.0, budget_s=20.0)
"""Shorter than a lease's margin: on executors nobody asks the lease between two attempts."""


_DELETED = Answer(Fate.DELETED)


class ObjectDelete:
    """Deletes objects wherever their location says. Folders stay, even empty ones: a writer may be about to use them.

    `conditional` says that the store was seen to honour If-Match on a delete. Where it was not, an ETag is compared
    with a read just before: weaker, and all that such a store offers. `throttle` is shared by all that delete in one
    store, whatever kind it is. A pickled copy has its own: `share` it.
    """

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        throttle: Throttle | None = None,
        conditional: bool = False,
        patience: Patience = DELETE_PATIENCE,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._properties = dict(properties or {})
        self._buckets = Buckets(self._properties)
        self.throttle = throttle or Throttle()
        self._conditional = conditional
        self._patience = patience
        self._sleep = sleep

    def share(self, parts: int) -> ObjectDelete:
        return ObjectDelete(
            self._properties,
            throttle=self.throttle.share(parts),
            conditional=self._conditional,
            patience=self._patience,
            sleep=self._sleep,
        )

    def delete(self, doomed: Sequence[Doomed], may_send: MaySend = always) -> list[DeleteOutcome]:
        from firnline.stores.delete_batches import UNSENT, in_bulk

        answers = [UNSENT] * len(doomed)
        bulks, rest = in_bulk(doomed, self.throttle.deletes)
        for number in rest:
            answers[number] = self._by_itself(doomed[number], may_send)
        for bulk, members in bulks.items():
            self._together(bulk, members, may_send, answers)
        return [DeleteOutcome(key, said.fate, said.error) for (key, _), said in zip(doomed, answers, strict=True)]

    def _by_itself(self, doomed: Doomed, may_send: MaySend) -> Answer:
        try:
            key = object_key(doomed.key)
            if key.scheme != "file":
                object_name(key)
        except StoreError as error:
            return Answer(Fate.FAILED, str(error))
        return self._patiently(key, doomed.etag, may_send)

    def _together(self, bulk: Bulk, members: Numbered, may_send: MaySend, answers: list[Answer]) -> None:
        """Writes an answer per number: what may pass is sent again, in smaller requests, while patience lasts."""
        from firnline.stores.s3.deletes import delete_bulk

        pauses = self._patience.pauses()
        while members:
            for batch in self._batches(bulk.lane, members):
                with self.throttle.turn(bulk.lane):
                    self._await_leave(bulk.lane, len(batch), may_send)
                    said = delete_bulk(self._buckets.s3().wire, bulk.bucket, [name for _, name in batch])
                self._learn(bulk.lane, said)
                for (number, _), answer in zip(batch, said, strict=True):
                    answers[number] = answer
            members = [each for each in members if answers[each[0]].again]
            pause = next(pauses, None) if members else None
            if pause is None:
                break
            self._sleep(pause)

    def _batches(self, lane: Lane, members: Numbered) -> Iterator[Numbered]:
        """Yields the members in requests, each as large as the store likes it at that moment."""
        start = 0
        while start < len(members):
            size = self.throttle.batch(lane)
            yield members[start : start + size]
            start += size

    def _patiently(self, key: Key, etag: str | None, may_send: MaySend) -> Answer:
        """Returns the answer for one key, asked again while it may pass. What fails on a local file does not."""
        lane = self.throttle.deletes(_folder_of(key))
        answer = self._at_leave(lane, key, etag, may_send)
        pauses = self._patience.pauses() if answer.again else iter(())
        while answer.again and (pause := next(pauses, None)) is not None:
            self._sleep(pause)
            answer = self._at_leave(lane, key, etag, may_send)
        return answer

    def _at_leave(self, lane: Lane, key: Key, etag: str | None, may_send: MaySend) -> Answer:
        with self.throttle.turn(lane):
            self._await_leave(lane, 1, may_send)
            answer = self._one(key, etag)
        if key.scheme != "file":
            self._learn(lane, [answer])
        return answer

    def _one(self, key: Key, etag: str | None) -> Answer:
        try:
            if etag is not None and not (self._conditional and key.scheme == "s3") and self._etag(key) != etag:
                return Answer(Fate.CHANGED, "another object has this name now")
            if key.scheme == "s3":
                from firnline.stores.s3.deletes import delete_single

                return delete_single(self._buckets.s3().client, key, etag if self._conditional else None)
            if key.scheme == "file":
                return _unlinked(key)
            self._delete_object(key)
        except ObjectNotFound:
            return Answer(Fate.MISSING)
        except HOPELESS:
            raise
        except StoreError as error:
            passes = key.scheme != "file" and not isinstance(error, PermanentStoreError)
            return Answer(Fate.FAILED, str(error), passes, passes and code_in(str(error.__cause__)) in SLOW_DOWN)
        return _DELETED

    def _etag(self, key: Key) -> str | None:
        with self.throttle.asking(self.throttle.reads(_folder_of(key))):
            return (LocalFiles() if key.scheme == "file" else self._buckets).head(key).etag

    def _delete_object(self, key: Key) -> None:
        """Deletes one object of any other store. Raises ObjectNotFound if there is none: obstore alone would not tell.
        Its request for many keys, to Azure, takes one that the answer leaves out for deleted; to Google it has none.
        """
        self._etag(key)
        with self._buckets.asking(key):
            obstore.delete(self._buckets.opened(key), object_name(key))

    def _await_leave(self, lane: Lane, keys: int, may_send: MaySend) -> None:
        """Waits for the budget, then asks: the lease may have run out while this waited, or before its turn came."""
        pause = self.throttle.reserve(lane, keys)
        if pause > 0:
            self._sleep(pause)
        may_send()

    def _learn(self, lane: Lane, answers: Sequence[Answer]) -> None:
        said = {id(answer): answer for answer in answers}.values()  # nearly always the same one for every key
        if any(answer.slow for answer in said):
            self.throttle.slowed(lane)
        elif not any(answer.again for answer in said):
            self.throttle.went_well(lane)


def _unlinked(key: Key) -> Answer:
    """Removes a local file. A link stays: what it leads to is another file, and nobody can tell who goes through it."""
    try:
        mode = os.lstat(key.path).st_mode
        if stat.S_ISLNK(mode):
            return Answer(Fate.CHANGED, "it is a link, and who else goes through it is not known")
        if stat.S_ISDIR(mode):
            raise StoreError(f"{key.text!r} is a folder")
        os.unlink(key.path)
        return _DELETED
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ObjectNotFound(f"no object {key.text!r}") from error
    except OSError as error:
        raise StoreError(f"cannot delete {key.text!r}: {error.strerror}") from error


def _folder_of(key: Key) -> str:
    return key.text.rpartition("/")[0]
