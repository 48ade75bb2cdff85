"""A thread of its own for observers that may be slow, so that no run waits for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import Full, Queue
from threading import Event as Signal
from threading import Thread

from firnline.ports.observing.news import News

ROOM = 1_000
"""News that wait to be told. A run has about six of them."""
CLOSING_S = 5.0
"""How long a process that ends waits for the last of them to be told."""


class Outlet:
    """Hands news on to `deliver`, one after the other, in a thread of its own.

    What finds no room is dropped and counted: an address that hangs, or a disk that is full, must not stop a purge.
    `deliver` is given the news and the number of those that were dropped before it; `finish` is called at the end.
    """

    def __init__(
        self, deliver: Callable[[News, int], None], room: int = ROOM, finish: Callable[[], None] = lambda: None
    ) -> None:
        self._deliver, self._waiting = deliver, Queue[News](room)
        self._thread: Thread | None = None
        self._told, self._taken = Signal(), 0
        self._ended = 0
        self.finish = finish
        self.dropped = 0
        self.failed = 0

    def hear(self, news: News) -> None:
        """Takes news, at once."""
        if self._thread is None:
            self._thread = Thread(target=self._tell_all, name="firnline-outlet", daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait(news)
            self._taken += 1
        except Full:
            self.dropped += 1

    def close(self, within_s: float = CLOSING_S) -> bool:
        """Waits until all was told, or for so long; tells whether it was. News may still come afterwards."""
        until = time.monotonic() + within_s
        while self._ended < self._taken and (left := until - time.monotonic()) > 0:
            self._told.wait(min(left, 0.05))
            self._told.clear()
        return self._ended >= self._taken

    def _tell_all(self) -> None:
        said = 0
        while True:
            news, dropped = self._waiting.get(), self.dropped
            try:
                self._deliver(news, dropped - said)
                said = dropped
            except Exception:  # whatever a socket, a pipe or a library says: the next ones are told nevertheless
                self.failed += 1
            self._ended += 1
            self._told.set()
