"""Surveys of small tables through a cache."""

from __future__ import annotations

from collections.abc import Collection

from firnline.caches.opening import OpenedCache
from firnline.formats.iceberg.table import IcebergFormat
from firnline.ops.runs.plan import roots
from firnline.ports.engines import Engine, Territory
from firnline.ports.stores import Read
from firnline.testing.surveys import Found, found
from firnline.testing.tables import SmallTable

DAY_MS = 86_400_000


def survey_with(engine: Engine, table: SmallTable, expired: Collection[int], store: Read, memory: OpenedCache) -> Found:
    """Returns what the engine says of the table as it is now, walking through the cache as a plan does."""
    table_format = IcebergFormat(store)
    state = table_format.load("table", table.publish())
    expand = memory.of(store)(table_format, state, DAY_MS)
    return found(engine.survey(roots(table_format, state, {str(each) for each in expired}), expand, Territory(None)))
