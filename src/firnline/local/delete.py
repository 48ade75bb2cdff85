"""Deletes on threads of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from firnline.ports.delete import Delete, DeleteOutcome


@dataclass(frozen=True, slots=True)
class LocalDeleteMany:
    threads: int = 8

    def delete_many(self, keys: Sequence[str], delete: Delete, may_send: Callable[[], None]) -> list[DeleteOutcome]:
        """Asks before every single key: a process that was frozen between two of them sends no other."""

        def send(share: Sequence[str]) -> list[DeleteOutcome]:
            outcomes: list[DeleteOutcome] = []
            for key in share:
                may_send()
                outcomes += delete.delete([key])
            return outcomes

        size = -(-len(keys) // self.threads) or 1
        shares = [keys[start : start + size] for start in range(0, len(keys), size)]
        with ThreadPoolExecutor(self.threads) as pool:
            return [outcome for outcomes in pool.map(send, shares) for outcome in outcomes]
