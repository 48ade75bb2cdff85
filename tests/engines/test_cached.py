"""The Spark engine walks through a cache: executors read and fill it, and then open nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from firnline.caches.disk import DiskCache
from firnline.caches.opening import OpenedCache
from firnline.caches.seal import Seal
from firnline.formats.iceberg.table import IcebergFormat
from firnline.model.times import DAY_MS
from firnline.ops.runs.plan import roots
from firnline.ports.engines import Engine, Territory
from firnline.stores.objects import ObjectStores
from firnline.testing.counting import CountingLog
from firnline.testing.engines import a_long_life
from firnline.testing.surveys import expected, found
from firnline.testing.tables import QuickFiles, SmallTable

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_executors_open_a_unit_once_in_all_surveys(spark: Engine, tmp_path: Path) -> None:
    table, expired = a_long_life(SmallTable(QuickFiles(), f"file://{tmp_path}/t"))
    memory = OpenedCache("", DiskCache(str(tmp_path / "cache")), Seal(b"of this test"))
    opened = []
    for number in range(2):
        store = CountingLog(ObjectStores(), str(tmp_path / f"{number}.log"))
        table_format = IcebergFormat(store)
        state = table_format.load("table", table.publish())
        expand = memory.of(store)(table_format, state, DAY_MS)
        gone = {str(each) for each in expired}
        answer = found(spark.survey(roots(table_format, state, gone), expand, Territory(None)))
        assert answer == expected(table, expired)
        opened.append(sum(verb == "get" and key.endswith(".avro") for verb, key in store.calls()))
    assert opened == [answer.units_opened, 0]
