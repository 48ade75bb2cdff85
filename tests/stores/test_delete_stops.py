"""Deletes on threads: once the whole has failed or was stopped, nobody sends on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import count
from threading import Event

import pytest

from firnline.errors import Interrupted, NoSuchBucket
from firnline.local.delete import LocalDeleteMany
from firnline.ports.delete import DeleteOutcome, Doomed, MaySend, always


class Endless:
    """Fails for the first key; for the others it asks, and asks again, as one does that waits for its budget."""

    def __init__(self, longest: int) -> None:
        self.longest, self.begun, self.ended = longest, Event(), list[BaseException | None]()

    def share(self, parts: int) -> Endless:
        return self

    def delete(self, doomed: Sequence[Doomed], may_send: MaySend = always) -> list[DeleteOutcome]:
        if doomed[0].key == "first":
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
        LocalDeleteMany(threads=2).delete_many([Doomed("first"), Doomed("second")], delete, always)
    assert [type(each) for each in delete.ended] == [Interrupted]
