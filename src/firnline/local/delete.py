"""Deletes on threads of this process."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

from firnline.errors import Interrupted
from firnline.ports.delete import Delete, DeleteOutcome, Doomed, MaySend


@dataclass(frozen=True, slots=True)
class LocalDeleteMany:
    threads: int = 16
    per_thread: int = 1_000

    @property
    def rows(self) -> int:
        return self.threads * self.per_thread

    def delete_many(self, doomed: Sequence[Doomed], delete: Delete, may_send: MaySend) -> list[DeleteOutcome]:
        """The deleter asks before every request: a process that was frozen between two of them sends no other.

        Where a share failed, or somebody stops the process at once, threads that are still at it send nothing more.
        """
        stopped = Event()

        def may_still_send() -> None:
            if stopped.is_set():
                raise Interrupted("another delete failed, or was stopped", hint="`firnline resume` goes on")
            may_send()

        def send(share: Sequence[Doomed]) -> list[DeleteOutcome]:
            return delete.delete(share, may_still_send)

        size = -(-len(doomed) // self.threads) or 1
        shares = [doomed[start : start + size] for start in range(0, len(doomed), size)]
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                return [outcome for outcomes in pool.map(send, shares) for outcome in outcomes]
            except BaseException:
                stopped.set()
                raise
