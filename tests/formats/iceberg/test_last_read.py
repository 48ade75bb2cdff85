"""The state that was read last is used again for the very same bytes only."""

from __future__ import annotations

import pickle
from pathlib import Path

from firnline.formats.iceberg.table import IcebergFormat
from firnline.stores.objects import ObjectStores
from firnline.testing.tables import SmallTable


def test_the_same_bytes_are_read_once(tmp_path: Path) -> None:
    table = SmallTable(ObjectStores(), str(tmp_path))
    table.append(1)
    location = table.publish()
    reader = IcebergFormat(ObjectStores())
    assert reader.load("t", location) is reader.load("t", location)
    assert reader.load("other", location).table == "other"


def test_other_bytes_under_the_same_name_are_another_state(tmp_path: Path) -> None:
    """As after a table was dropped and made again: its first metadata file has the name of the old one."""
    table = SmallTable(ObjectStores(), str(tmp_path))
    first = table.append(1)
    path = Path(table.publish().removeprefix("file://"))
    reader = IcebergFormat(ObjectStores())
    before = reader.load("t", str(path))
    second = table.append(1)
    path.write_bytes(Path(table.publish().removeprefix("file://")).read_bytes())
    after = reader.load("t", str(path))
    assert before.current == str(first)
    assert after.current == str(second)


def test_a_copy_that_travels_remembers_nothing(tmp_path: Path) -> None:
    table = SmallTable(ObjectStores(), str(tmp_path))
    table.append(1)
    reader = IcebergFormat(ObjectStores())
    state = reader.load("t", table.publish())
    assert len(pickle.dumps(reader)) < 1_000
    assert pickle.loads(pickle.dumps(reader)).load("t", state.fence).current == state.current
