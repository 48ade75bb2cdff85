"""Deletes on threads of this process."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from firnline.ports.delete import Delete, DeleteOutcome, Doomed, MaySend


@dataclass(frozen=True, slots=True)
class LocalDeleteMany:
    threads: int = 8
    per_thread: int = 1_000

    @property
    def rows(self) -> int:
        return self.threads * self.per_thread

    def delete_many(self, doomed: Sequence[Doomed], delete: Delete, may_send: MaySend) -> list[DeleteOutcome]:
        """The deleter asks before every request: a process that was frozen between two of them sends no other."""

        def send(share: Sequence[Doomed]) -> list[DeleteOutcome]:
            return delete.delete(share, may_send)

        size = -(-len(doomed) // self.threads) or 1
        shares = [doomed[start : start + size] for start in range(0, len(doomed), size)]
        with ThreadPoolExecutor(self.threads) as pool:
            return [outcome for outcomes in pool.map(send, shares) for outcome in outcomes]
