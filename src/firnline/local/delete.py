"""Deletes on threads of this process."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from firnline.ports.delete import Delete, DeleteOutcome

CHUNK = 500


@dataclass(frozen=True, slots=True)
class LocalDeleteMany:
    threads: int = 8

    def delete_many(self, keys: Sequence[str], delete: Delete) -> list[DeleteOutcome]:
        chunks = [keys[start : start + CHUNK] for start in range(0, len(keys), CHUNK)]
        with ThreadPoolExecutor(self.threads) as pool:
            return [outcome for outcomes in pool.map(delete.delete, chunks) for outcome in outcomes]
