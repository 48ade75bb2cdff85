"""Deletes on threads of this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

from firnline.errors import Interrupted
from firnline.model.locations import parse_location
from firnline.ports.delete import Delete, DeleteOutcome, Doomed, Lend, MaySend
from firnline.ports.expanding import SideBySide

Send = Callable[[Sequence[Doomed]], list[DeleteOutcome]]
_AT_ONCE = 32
"""Files between two looks at the clock: a disk removes that many in about a millisecond."""


_THREADS = 16
_PER_THREAD = 1_000


@dataclass(frozen=True, slots=True)
class LocalDeleteMany:
    """`at_once` requests are under way, and one call brings at most `most` keys; None: as many as serve well."""

    at_once: int | None = None
    most: int | None = None

    @property
    def threads(self) -> int:
        return self.at_once or _THREADS

    @property
    def rows(self) -> int:
        return min(self.threads * _PER_THREAD, self.most or sys.maxsize)

    def delete_many(
        self, doomed: Sequence[Doomed], delete: Delete, may_send: MaySend, lend: Lend | None = None
    ) -> list[DeleteOutcome]:
        """The deleter asks before every request: a process that was frozen between two of them sends no other.

        Where a share failed, or the process is stopped at once, threads that are still at it send nothing more.
        """
        stopped = Event()

        def may_still_send() -> None:
            if stopped.is_set():
                raise Interrupted("another delete failed, or was stopped", hint="`firnline resume` goes on")
            may_send()

        def send(share: Sequence[Doomed]) -> list[DeleteOutcome]:
            return delete.delete(share, may_still_send)

        with ThreadPoolExecutor(self.threads) as pool:
            try:
                return [outcome for outcomes in self._spread(send, doomed, pool) for outcome in outcomes]
            except BaseException:
                stopped.set()
                raise

    def _spread(self, send: Send, doomed: Sequence[Doomed], pool: ThreadPoolExecutor) -> Iterator[list[DeleteOutcome]]:
        """Yields the outcomes in order. Files of this machine go one after the other as long as its disk keeps up: more
        threads would only wait for each other, and for the folder.
        """
        if doomed and parse_location(doomed[0].key).scheme == "file":
            return SideBySide(pool)(send, _shares(doomed, _AT_ONCE))
        return pool.map(send, _shares(doomed, -(-len(doomed) // self.threads) or 1))


def _shares(doomed: Sequence[Doomed], size: int) -> list[Sequence[Doomed]]:
    return [doomed[start : start + size] for start in range(0, len(doomed), size)]
