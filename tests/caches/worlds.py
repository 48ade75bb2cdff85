"""Surveys of small tables through a cache, and caches that lie."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from firnline.caches.opening import OpenedCache
from firnline.caches.seal import Seal
from firnline.formats.iceberg.table import IcebergFormat
from firnline.ops.runs.plan import roots
from firnline.ports.cache import Cache
from firnline.ports.engines import Engine, Territory
from firnline.ports.stores import Read
from firnline.testing.surveys import Found, found
from firnline.testing.tables import SmallTable

SECRET = b"a secret that no cache has"
DAY_MS = 86_400_000

Lie = Callable[[str, dict[str, bytes]], bytes]
"""From the name that is asked for and all entries to what is answered."""


@dataclass
class Ledger:
    """A cache in this process. A lie, once set, answers in place of the entries."""

    entries: dict[str, bytes] = field(default_factory=dict)
    lie: Lie | None = None
    asked: list[str] = field(default_factory=list)

    def get(self, key: str) -> bytes | None:
        self.asked.append(key)
        if self.lie is None or not self.entries:
            return self.entries.get(key)
        return self.lie(key, self.entries)

    def put(self, key: str, data: bytes, ttl_s: int) -> None:
        self.entries[key] = data


def memory_of(cache: Cache, secret: bytes = SECRET) -> OpenedCache:
    return OpenedCache("a test's own", cache, Seal(secret))


def survey_with(engine: Engine, table: SmallTable, expired: Collection[int], store: Read, memory: OpenedCache) -> Found:
    """Returns what the engine says of the table as it is now, walking through the cache as a plan does."""
    table_format = IcebergFormat(store)
    state = table_format.load("table", table.publish())
    expand = memory.of(store)(table_format, state, DAY_MS)
    return found(engine.survey(roots(table_format, state, {str(each) for each in expired}), expand, Territory(None)))
