"""Deletes on threads: once the whole has failed or was stopped, nobody sends on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import count
from threading import Event, get_ident

import pytest

from firnline.errors import Interrupted, NoSuchBucket
from firnline.local.delete import LocalDeleteMany
from firnline.ports.delete import DeleteOutcome, Doomed, Fate, MaySend, always


class Endless:
    """Fails for the first key; for the others it asks, and asks again, as one does that waits for its budget."""

    def __init__(self, longest: int) -> None:
        self.longest, self.begun, self.ended = longest, Event(), list[BaseException | None]()

    def share(self, parts: int) -> Endless:
        return self

    def delete(self, doomed: Sequence[Doomed], may_send: MaySend = always) -> list[DeleteOutcome]:
        if doomed[0].key.endswith("/first"):
            assert self.begun.wait(60)
            raise NoSuchBucket("gone")
        self.begun.set()
        try:
            for asked in count():
                may_send()
                time.sleep(0.01)
                if asked > self.longest:
                    break
        except Interrupted as stopped:
            self.ended.append(stopped)
            raise
        self.ended.append(None)
        return []


def test_threads_that_are_still_at_it_send_nothing_after_another_failed() -> None:
    delete = Endless(longest=1_000)
    with pytest.raises(NoSuchBucket, match="gone"):
        LocalDeleteMany(at_once=2).delete_many([Doomed("s3://b/first"), Doomed("s3://b/second")], delete, always)
    assert [type(each) for each in delete.ended] == [Interrupted]


class Slow:
    """Takes its time for each share, as a disk of another machine does; notes which threads it was called on."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.threads = seconds, list[int]()

    def share(self, parts: int) -> Slow:
        return self

    def delete(self, doomed: Sequence[Doomed], may_send: MaySend = always) -> list[DeleteOutcome]:
        self.threads.append(get_ident())
        time.sleep(self.seconds)
        return [DeleteOutcome(each.key, Fate.DELETED) for each in doomed]


def test_local_files_go_on_threads_where_their_disk_is_slow() -> None:
    doomed = [Doomed(f"/files/{number}") for number in range(100)]
    slow, quick = Slow(0.01), Slow(0)
    for delete in (slow, quick):
        outcomes = LocalDeleteMany(at_once=4).delete_many(doomed, delete, always)
        assert [each.key for each in outcomes] == [each.key for each in doomed]
    assert slow.threads[0] == get_ident()
    assert get_ident() not in slow.threads[1:]
