"""Requests that wait for tables: so many for one table, so many in all; those beyond are told to come again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from firnline.errors import FirnlineError

OF_A_TABLE, OF_ALL = 4, 24
"""The server has 40 threads: what is known already is shown by the others."""


class Busy(FirnlineError):
    """A table is slow, and enough requests wait for it."""

    kind = "busy"
    retry_s = 5


@dataclass
class Waits:
    """Who waits now, by table."""

    of_a_table: int = OF_A_TABLE
    of_all: int = OF_ALL
    _now: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    @contextmanager
    def of(self, table: str) -> Iterator[None]:
        """Counts one who waits for a table. Raises Busy where enough do."""
        with self._lock:
            if self._now[table] >= self.of_a_table or self._now.total() >= self.of_all:
                raise Busy("others wait for this already", hint="ask again in some seconds")
            self._now[table] += 1
        try:
            yield
        finally:
            with self._lock:
                self._now[table] -= 1
                self._now += Counter()  # drops those that nobody waits for
