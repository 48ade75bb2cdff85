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
_LOOK_EVERY_S = 0.05


class Outlet:
    """Hands news on to `deliver`, one after the other, in a thread of its own.

    What finds no room is dropped and counted: an address that hangs, or a disk that is full, must not stop a purge.
    `deliver` is given the news and the number of those that were dropped before it; `finish` is called at the end.
    """

    def __init__(
        self, deliver: Callable[[News, int], None], room: int = ROOM, finish: Callable[[], None] = lambda: None
    ) -> None:
        self._deliver, self._finish = deliver, finish
        self._waiting, self._told = Queue[News | None](room), Signal()
        self._thread: Thread | None = None
        self._taken = self._ended = 0
        self.dropped = self.failed = 0

    def hear(self, news: News) -> None:
        """Takes news, at once."""
        if self._thread is None:
            self._thread = Thread(target=self._tell_all, name="firnline-outlet", daemon=True)
            self._thread.start()
        if not self._take(news):
            self.dropped += 1

    def end(self) -> None:
        """Says that no more news come: the thread that tells them also finishes, for none can be started by then."""
        if self._thread is not None:
            self._take(None)

    def _take(self, what: News | None) -> bool:
        try:
            self._waiting.put_nowait(what)
        except Full:
            return False
        self._taken += 1
        return True

    def close(self, within_s: float = CLOSING_S) -> bool:
        """Waits until all was told, or for so long; tells whether it was."""
        until = time.monotonic() + within_s
        while self._ended < self._taken and (left := until - time.monotonic()) > 0:
            self._told.wait(min(left, _LOOK_EVERY_S))
            self._told.clear()
        return self._ended >= self._taken

    def _tell_all(self) -> None:
        said = 0
        while True:
            news, dropped = self._waiting.get(), self.dropped
            try:
                if news is None:
                    self._finish()
                else:
                    self._deliver(news, dropped - said)
                    said = dropped
            except Exception:  # whatever a socket, a pipe or a library says: the next ones are told nevertheless
                self.failed += 1
            self._ended += 1
            self._told.set()
            if news is None:
                return


def close_all(outlets: list[Outlet], within_s: float = CLOSING_S) -> None:
    """Waits until all was told, or for so long: one that hangs does not keep the process."""
    until = time.monotonic() + within_s
    for outlet in outlets:
        outlet.end()
    for outlet in outlets:
        outlet.close(max(0.0, until - time.monotonic()))
